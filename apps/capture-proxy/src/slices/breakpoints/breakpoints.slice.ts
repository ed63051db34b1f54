import { randomUUID } from "node:crypto";
import { Breakpoint, type breakpointsOperations, BreakpointUpdate, type Notice } from "@headworks/capture-contract";
import { exchangeUrl } from "#exchange/exchange.ts";
import { portableList } from "#portable/portable-list.ts";
import { createHitCounter } from "#rules/rule-table.ts";
import type { Clock, Slice, SliceHost } from "#slice.ts";
import { breakpointIssues, createBreakpointsStore, readBreakpoint, showBreakpoint } from "./breakpoint-rule.ts";
import { type BreakpointRules, compileBreakpoints, BreakpointsInterceptor } from "./breakpoints.interceptor.ts";
import { createBreakpointsOperations } from "./breakpoints.operations.ts";
import { PauseAllSwitch, type Paused, PausedExchanges, type PauseEnd } from "./paused-exchanges.ts";

const QUIET_MS = 50;

/** Pauses exchanges for inspection and editing. */
export function createBreakpointsSlice(host: SliceHost): Slice<typeof breakpointsOperations> {
  const { clock, log, events, settings } = host;
  const store = createBreakpointsStore(host.database);
  const compile = (): BreakpointRules => {
    const compiled = compileBreakpoints(store.list());
    if (compiled.issues.length > 0) {
      log.error({ issues: compiled.issues }, "breakpoints with unreadable conditions pause nothing");
    }
    return compiled;
  };
  const active = { rules: compile() };
  const notice = coalescedNotice(clock, () => events.changed("breakpoints"));
  const onChange = (): void => {
    active.rules = compile();
    notice();
  };
  const hits = createHitCounter({
    addHits: (batch) => store.addHits(batch),
    every: (intervalMs, callback) => clock.every(intervalMs, callback),
    onFailure: (error) =>
      log.warn({ err: error }, "hit counts of breakpoints could not be saved; they are kept and will be retried"),
  });
  const paused = new PausedExchanges({
    clock,
    newId: randomUUID,
    onChange: notice,
    onEnd: (pause, reason, what) => events.notice(endNotice(pause, reason, what)),
  });
  const pauseAll = new PauseAllSwitch(notice);
  const bodyLimitBytes = (): number => settings.running.breakpoint_body_limit;
  return {
    name: "breakpoints",
    operations: createBreakpointsOperations({ store, hits, paused, pauseAll, clock, bodyLimitBytes, onChange }),
    interceptor: new BreakpointsInterceptor({
      active,
      pauseAll,
      paused,
      bodyLimitBytes,
      onHit: (ruleId) => hits.hit(ruleId),
    }),
    observer: paused,
    task: { start: (signal) => hits.start(signal) },
    portableRules: portableList<Breakpoint>({
      key: "breakpoints",
      schemaVersion: 1,
      schemas: [Breakpoint, BreakpointUpdate],
      list: () => store.list().map((rule) => showBreakpoint(rule, hits.pending(rule.id))),
      check: breakpointIssues,
      write: (rules) => store.replaceAll(rules.map(readBreakpoint)),
      reload: () => {
        hits.forgetAll();
        store.reload();
        onChange();
      },
    }),
  };
}

/** The notice about a pause that ended without a decision. */
function endNotice({ id, exchange, rule, side }: Paused, reason: PauseEnd, what: string): Notice {
  const { method } = exchange.request;
  const which = side === "request" ? method : `The response to ${method}`;
  return {
    code: "pause-ended",
    message: `${which} ${exchangeUrl(exchange.request)} ${what}`,
    paused_id: id,
    entry_id: exchange.id,
    rule_id: rule.id,
    reason,
  };
}

/** Notifies at once; further changes within the interval are coalesced into one notification. */
function coalescedNotice(clock: Pick<Clock, "monotonic" | "after">, notify: () => void): () => void {
  let notifiedMs = Number.NEGATIVE_INFINITY;
  let isArmed = false;
  const now = (): void => {
    isArmed = false;
    notifiedMs = clock.monotonic();
    notify();
  };
  return () => {
    if (isArmed) return;
    const waitMs = notifiedMs + QUIET_MS - clock.monotonic();
    if (waitMs <= 0) return now();
    isArmed = true;
    clock.after(waitMs, now);
  };
}
