import type { ConfigDocument } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";

/** Fields of a connection or a single client; responses that depend on them are never stored. */
const REFUSED: ReadonlySet<string> = new Set([
  "authorization",
  "connection",
  "cookie",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Fields in the key must come from the client unchanged. */
export function checkCache(document: ConfigDocument, report: IssueReport): void {
  for (const [index, { cache, action }] of document.routes.entries()) {
    if (cache === undefined) continue;
    const fieldPath = ["routes", index, "cache"];
    for (const [at, name] of (cache.vary ?? []).entries()) {
      const lower = name.toLowerCase();
      if (!REFUSED.has(lower) && !lower.startsWith("x-consumer-")) continue;
      report.error("bad_header", [...fieldPath, "vary", at], `Answers cannot be kept by ${name}`);
    }
    if (action.type !== "proxy") {
      report.warning("unused", fieldPath, "Only upstream responses are cached: this route's action generates its own");
    }
  }
}
