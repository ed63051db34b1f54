import type { ConfigDocument, FieldChanges } from "@headworks/gateway-contract";
import { dashedName, identityKind } from "#request/client-identity.ts";
import { carriesAnId } from "#request/forwarded-fields.ts";
import type { IssueReport } from "#slice.ts";

/** Hop-by-hop and framing fields, which the gateway writes itself (RFC 9110, 7.6.1). */
const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Identity fields trusted by upstreams; a rename must not let clients set them. */
const IDENTITY_FIELDS: ReadonlySet<string> = new Set(["x-correlation-id", "x-request-id"]);

const isIdentity = (name: string): boolean => {
  const dashed = dashedName(name.toLowerCase());
  return IDENTITY_FIELDS.has(dashed) || dashed.startsWith("x-consumer-") || identityKind(dashed) !== undefined;
};

type FieldPath = readonly (string | number)[];

/** Rejects changes of fields that the gateway controls, and renames to identity fields. */
export function checkTransforms(document: ConfigDocument, report: IssueReport): void {
  const responseProblem = (name: string): string | undefined =>
    carriesAnId(name, document.gateway)
      ? `${name} carries an id, which the gateway adds to every answer`
      : connectionProblem(name);
  for (const [index, { transforms, action }] of document.routes.entries()) {
    if (transforms === undefined) continue;
    const fieldPath = ["routes", index, "transforms"];
    const { request, response } = transforms;
    checkFields(request?.headers, connectionProblem, [...fieldPath, "request", "headers"], report);
    for (const [from, to] of Object.entries(request?.headers?.rename ?? {})) {
      if (!isIdentity(to)) continue;
      const message = `A client could say who it is by sending ${from}: the gateway alone writes ${to}`;
      report.error("bad_header", [...fieldPath, "request", "headers", "rename", from], message);
    }
    checkFields(response?.headers, responseProblem, [...fieldPath, "response", "headers"], report);
    if (request !== undefined && action.type !== "proxy") {
      const message = "Only requests of proxy routes can be changed: this route's action has no upstream";
      report.warning("unused", [...fieldPath, "request"], message);
    }
  }
}

const connectionProblem = (name: string): string | undefined =>
  CONNECTION_FIELDS.has(name.toLowerCase())
    ? `${name} belongs to the connection; the gateway writes it itself`
    : undefined;

/** `problemOf` returns the reason a field cannot be changed. */
function checkFields(
  changes: FieldChanges | undefined,
  problemOf: (name: string) => string | undefined,
  fieldPath: FieldPath,
  report: IssueReport,
): void {
  const check = (name: string, at: FieldPath): void => {
    const problem = problemOf(name);
    if (problem !== undefined) report.error("bad_header", [...fieldPath, ...at], problem);
  };
  for (const kind of ["set", "add"] as const) {
    for (const name of Object.keys(changes?.[kind] ?? {})) check(name, [kind, name]);
  }
  for (const [from, to] of Object.entries(changes?.rename ?? {})) {
    check(from, ["rename", from]);
    check(to, ["rename", from]);
  }
  for (const [index, name] of (changes?.remove ?? []).entries()) check(name, ["remove", index]);
}
