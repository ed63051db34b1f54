import type { ConfigDocument, Cors } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";
import { normalOrigin } from "./origin.ts";

type FieldPath = readonly (string | number)[];

/** Checks syntax of origins, that a wildcard is the only entry, and that it is not combined with credentials. */
export function checkCors(document: ConfigDocument, report: IssueReport): void {
  for (const [index, { cors }] of document.routes.entries()) {
    if (cors !== undefined) checkBlock(cors, ["routes", index, "cors"], report);
  }
}

/** A token, as methods and header names are (RFC 9110 section 5.6.2). */
export const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

function checkBlock(cors: Cors, fieldPath: FieldPath, report: IssueReport): void {
  const { allowed_origins: origins, allowed_headers: headers = [], expose_headers: exposed = [] } = cors;
  for (const [index, origin] of origins.entries()) {
    if (origin === "*" ? origins.length === 1 : normalOrigin(origin) !== undefined) continue;
    const message =
      origin === "*"
        ? "* allows every origin, so it must stand alone"
        : "This is no origin: it must be * or scheme://host[:port], without path, query and wildcard";
    report.error("bad_value", [...fieldPath, "allowed_origins", index], message);
  }
  for (const [index, header] of headers.entries()) {
    if (TOKEN.test(header)) continue;
    report.error(
      "bad_header",
      [...fieldPath, "allowed_headers", index],
      `This is no header name, and not *${header.includes(",") ? "; write each name for itself" : ""}`,
    );
  }
  for (const [index, header] of exposed.entries()) {
    if (header !== "*") continue;
    report.error("bad_header", [...fieldPath, "expose_headers", index], "Headers to expose must be named one by one");
  }
  if (cors.allow_credentials !== true) return;
  const at = [...fieldPath, "allow_credentials"];
  if (origins.includes("*")) {
    report.error("bad_value", at, "Credentials cannot be allowed to every origin: name the origins");
  }
  if (headers.includes("*")) {
    report.error("bad_value", at, "Credentials cannot be allowed with every header: name the headers");
  }
}
