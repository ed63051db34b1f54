import type { RewriteDryRunResult, RewrittenResponse, TrafficEntry } from "@headworks/capture-contract";
import type { BodyLimits } from "#rules/message-edit.ts";
import { RecordedExchange } from "#rules/recorded-exchange.ts";
import { createRewriteRun } from "./rewrite-run.ts";
import type { RewriteRules } from "./rewrites.compile.ts";

/** Applies rules to a stored entry: nothing is sent, stored or counted. */
export async function dryRun(
  entry: TrafficEntry,
  rules: RewriteRules,
  limits: () => BodyLimits,
): Promise<RewriteDryRunResult> {
  const exchange = new RecordedExchange(entry);
  const run = createRewriteRun({ limits, onHit: () => undefined });
  const requestBefore = await exchange.shownRequest();
  const verdict = await run.request(exchange, rules);
  const requestAfter = await exchange.shownRequest();
  let responseBefore: RewrittenResponse | null = null;
  if (verdict.kind === "respond") exchange.respond(verdict.response);
  else responseBefore = await exchange.shownResponse();
  if (exchange.response !== undefined) {
    const later = await run.response(exchange, rules);
    if (later.kind === "respond") exchange.respond(later.response);
  }
  const responseAfter = await exchange.shownResponse();
  return {
    matched: exchange.trace.length > 0,
    changed: verdict.kind === "respond" || exchange.isChanged,
    trace: exchange.trace,
    request: { before: requestBefore, after: requestAfter },
    response: responseAfter && { before: responseBefore, after: responseAfter },
  };
}
