import type { Static } from "typebox";
import { oneOf, strictObject, Type } from "@headworks/contract-kit";
import { Cidr, DryRun, HttpUrl, Name, NameList, PositiveCount, PositiveMs, SecretHeaderMap } from "./primitives.ts";

export const RateLimit = strictObject({
  name: Type.Optional(Name),
  /** Combined into one key. */
  selector: Type.Array(oneOf(["ip", "credential", "route"]), { minItems: 1, uniqueItems: true }),
  requests_per: strictObject(
    {
      s: Type.Optional(PositiveCount),
      minute: Type.Optional(PositiveCount),
      hour: Type.Optional(PositiveCount),
    },
    { minProperties: 1 },
  ),
  burst: Type.Optional(PositiveCount),
  /** Prefix length of IPv6 addresses that count as one client. */
  ipv6_prefix_length: Type.Optional(Type.Integer({ minimum: 1, maximum: 128 })),
});

export type RateLimit = Static<typeof RateLimit>;

/** An external decision point: Open Policy Agent's data API, or a server that allows with 2xx. */
export const Callout = strictObject({
  type: oneOf(["opa", "http"]),
  url: HttpUrl,
  timeout_ms: Type.Optional(PositiveMs),
  on_error: Type.Optional(oneOf(["deny", "allow"])),
  cache_ttl_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 3_600_000 })),
  headers: Type.Optional(SecretHeaderMap),
});

export type Callout = Static<typeof Callout>;

/** A named policy referenced by routes, services, listeners, consumers or the gateway. */
export const Policy = strictObject({
  name: Name,
  dry_run: Type.Optional(DryRun),
  rate_limits: Type.Optional(Type.Array(RateLimit)),
  callout: Type.Optional(Callout),
});

export type Policy = Static<typeof Policy>;

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
