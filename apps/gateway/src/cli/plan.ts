import { isError, type CheckParts } from "#config/check-document.ts";
import { planChanges } from "#config/plan-changes.ts";
import { toJson } from "#config/write-document.ts";
import type { AdminOptions } from "./admin-client.ts";
import { changeText } from "./diff.ts";
import { complain, issuesOf, openDocument, printUnchecked, type Streams } from "./document-file.ts";
import { EXIT } from "./invocation.ts";
import { recentTraffic, shareText } from "./recent-traffic.ts";

export interface PlanOptions extends AdminOptions {
  readonly json?: boolean;
}

/**
 * `sluice plan OLD NEW`: shows the changes between two configurations and the affected routes, consumers, upstreams and
 * listeners; with a running gateway, also the recent requests affected. Resolves to 1 if the new one has errors or the
 * old one is unreadable.
 */
export async function plan(
  before: string,
  after: string,
  options: PlanOptions,
  streams: Streams,
  parts: CheckParts,
): Promise<number> {
  const old = await openDocument(before, streams);
  const young = await openDocument(after, streams);
  const oldDocument = old?.reading.document;
  const youngDocument = young?.reading.document;
  if (old !== undefined && (complain(before, old.reading.issues, streams) > 0 || oldDocument === undefined)) {
    return EXIT.failure;
  }
  if (young === undefined || old === undefined) return EXIT.failure;
  const issues = issuesOf(young, parts);
  if (complain(after, issues, streams) > 0 || youngDocument === undefined) return EXIT.failure;
  printUnchecked(after, issues, streams);
  const planned = planChanges(oldDocument, youngDocument);
  const traffic = await recentTraffic(options, parts.environment);
  if (typeof traffic === "string") streams.stderr.write(`sluice: The traffic of routes is not shown: ${traffic}\n`);
  if (options.json === true) {
    const warnings = issues.filter((issue) => !isError(issue));
    const known = typeof traffic === "object" ? { traffic } : {};
    streams.stdout.write(`${toJson({ ...planned, warnings, ...known })}\n`);
    return EXIT.ok;
  }
  const lines = planned.changes.map(changeText);
  for (const [title, names] of [
    ["routes that feel it", planned.routes],
    ["consumers that feel it", planned.consumers],
    ["upstreams that change", planned.upstreams],
    ["listeners whose connections end", planned.rebound],
  ] as const) {
    if (names.length > 0) lines.push(`${title}: ${names.join(", ")}`);
  }
  if (typeof traffic === "object" && planned.routes.length > 0) lines.push(shareText(planned.routes, traffic));
  streams.stdout.write(lines.length === 0 ? "no differences\n" : `${lines.join("\n")}\n`);
  return EXIT.ok;
}
