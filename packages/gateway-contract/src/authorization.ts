import { oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Cidr, DryRun, NameList } from "./primitives.ts";

/** Access rules, allowed at five levels: consumer, route, service, listener and gateway. */
export const Authorization = strictObject({
  allowed_consumers: Type.Optional(NameList),
  denied_consumers: Type.Optional(NameList),
  allowed_groups: Type.Optional(NameList),
  denied_groups: Type.Optional(NameList),
  required_scopes: Type.Optional(NameList),
  required_claims: Type.Optional(Type.Record(Type.String(), Type.String())),
  ip_acl: Type.Optional(
    strictObject({
      allow: Type.Optional(Type.Array(Cidr)),
      deny: Type.Optional(Type.Array(Cidr)),
      default: Type.Optional(oneOf(["allow", "deny"])),
    }),
  ),
  dry_run: Type.Optional(DryRun),
});
export type Authorization = Static<typeof Authorization>;
