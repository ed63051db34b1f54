import type { Authorization, ConfigDocument } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";
import { isEverything } from "./address-set.ts";

type FieldPath = readonly (string | number)[];

/** Rejects empty blocks and address rules that admit everyone. */
export function checkAuthorization(document: ConfigDocument, report: IssueReport): void {
  checkBlock(document.gateway.authorization, ["gateway", "authorization"], report);
  for (const section of ["listeners", "services", "routes", "consumers"] as const) {
    for (const [at, { authorization }] of document[section].entries()) {
      checkBlock(authorization, [section, at, "authorization"], report);
    }
  }
}

function checkBlock(block: Authorization | undefined, fieldPath: FieldPath, report: IssueReport): void {
  if (block === undefined) return;
  if (!hasRule(block)) {
    const message = "This authorization has no rule, so it would say nothing; give it one, or leave it out";
    report.error("required", fieldPath, message);
  }
  for (const [at, network] of (block.ip_acl?.allow ?? []).entries()) {
    if (!isEverything(network)) continue;
    const message = `"${network}" lets every address in; leave ip_acl out, or say "default: allow"`;
    report.error("bad_cidr", [...fieldPath, "ip_acl", "allow", at], message);
  }
}

function hasRule(block: Authorization): boolean {
  const { ip_acl: acl = {} } = block;
  const lists = [
    block.allowed_consumers,
    block.denied_consumers,
    block.allowed_groups,
    block.denied_groups,
    block.required_scopes,
    acl.allow,
    acl.deny,
  ];
  if (lists.some((list) => list !== undefined && list.length > 0)) return true;
  return Object.keys(block.required_claims ?? {}).length > 0 || acl.default !== undefined;
}
