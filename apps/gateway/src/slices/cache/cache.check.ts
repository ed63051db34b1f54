import type { ConfigDocument } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";

/** Concern a connection or one client: what depends on them is never kept. */
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

/** Fields that tell kept answers apart must be the client's own words. */
export function checkCache(document: ConfigDocument, report: IssueReport): void {
  for (const [index, { cache, action }] of document.routes.entries()) {
    if (cache === undefined) continue;
    const place = ["routes", index, "cache"];
    for (const [at, name] of (cache.vary ?? []).entries()) {
      const lower = name.toLowerCase();
      if (!REFUSED.has(lower) && !lower.startsWith("x-consumer-")) continue;
      report.error("bad_header", [...place, "vary", at], `Answers cannot be kept by ${name}`);
    }
    if (action.type !== "proxy") {
      report.warning("unused", place, "Only answers of upstreams are kept: this route's action makes them itself");
    }
  }
}
