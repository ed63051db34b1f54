import type { Exchange } from "#exchange/exchange.ts";
import { CONTINUE } from "#exchange/phases.ts";
import type { Interceptor, Observer, Target, Verdict } from "#exchange/phases.ts";
import type { Clock } from "#slice.ts";
import type { ThrottledLine } from "./throttled-line.ts";

/** What is kept for the trace where there is no rule with an id. */
const RULE_ID = "throttle";

/**
 * Puts exchanges and tunnels on the throttled line. All of those the profile is for are put on it, whether it is limited
 * or not, so that a change reaches transfers that run.
 */
export class ThrottleInterceptor implements Interceptor, Observer {
  readonly name = "throttle";
  delayedCount = 0;
  lostCount = 0;
  readonly #line: ThrottledLine;
  readonly #clock: Clock;
  readonly #wakingMs: number;
  /** Lost requests whose clients wait for an answer. */
  readonly #stalled = new Map<string, () => void>();

  /** `wakingMs`: what waking up takes of this machine; delays are shorter by it. */
  constructor(line: ThrottledLine, clock: Clock, wakingMs = 0) {
    this.#line = line;
    this.#clock = clock;
    this.#wakingMs = wakingMs;
  }

  get stalledCount(): number {
    return this.#stalled.size;
  }

  /** The profile changed: what stalls by the old one goes on. */
  releaseStalled(): void {
    const stalled = [...this.#stalled.values()];
    this.#stalled.clear();
    for (const release of stalled) release();
  }

  onTarget(target: Target): Verdict | Promise<Verdict> {
    const line = this.#line;
    if (!line.isFor(target.host)) return CONTINUE;
    target.pace = line.pace;
    const passage = line.passage();
    if (passage.kind === "pass") return this.#delayed(passage.delayMs);
    this.lostCount += 1;
    return { kind: "abort", reason: `Lost by the throttle profile ${line.profile.name}`, closes: true };
  }

  onRequestHead(exchange: Exchange): Verdict | Promise<Verdict> {
    const line = this.#line;
    if (!line.isFor(exchange.request.host)) return CONTINUE;
    exchange.pace = line.pace;
    if (!line.isOn) return CONTINUE;
    const passage = line.passage();
    if (passage.kind === "lost") return this.#lost(exchange, passage.mode);
    this.#trace(exchange, shaping(line, passage.delayMs));
    return this.#delayed(passage.delayMs);
  }

  onFinished({ id }: { readonly id: string }): void {
    if (this.#stalled.size > 0) this.#stalled.delete(id);
  }

  #lost(exchange: Exchange, mode: "reset" | "stall"): Verdict | Promise<Verdict> {
    const { name, lossPercent } = this.#line.profile;
    this.lostCount += 1;
    this.#trace(exchange, [`lost, as ${lossPercent} of a hundred are: ${mode === "reset" ? "reset" : "stalled"}`]);
    if (mode === "reset") return { kind: "abort", reason: `Lost by the throttle profile ${name}`, closes: true };
    const { promise, resolve } = Promise.withResolvers<Verdict>();
    this.#stalled.set(exchange.id, () => resolve(CONTINUE));
    return promise;
  }

  #delayed(delayMs: number): Verdict | Promise<Verdict> {
    if (delayMs === 0) return CONTINUE;
    this.delayedCount += 1;
    const clock = this.#clock;
    const dueMs = clock.monotonic() + delayMs - this.#wakingMs;
    return new Promise((resolve) => {
      // Timers count from the start of the event loop's turn, which may have been a while ago.
      const look = (): void => {
        const leftMs = dueMs - clock.monotonic();
        if (leftMs > 0) clock.after(Math.max(1, leftMs), look);
        else resolve(CONTINUE);
      };
      clock.after(Math.max(1, delayMs - this.#wakingMs), look);
    });
  }

  #trace(exchange: Exchange, changes: readonly string[]): void {
    const { name } = this.#line.profile;
    exchange.addTrace({ kind: "throttle", ruleId: RULE_ID, ruleName: name, phase: "request", changes });
  }
}

function shaping({ profile }: ThrottledLine, delayMs: number): string[] {
  const { downloadBytesPerSecond: down, uploadBytesPerSecond: up } = profile;
  return [
    ...(delayMs > 0 ? [`delayed by ${Math.round(delayMs)} ms`] : []),
    ...(down > 0 ? [`at most ${down} bytes/s down`] : []),
    ...(up > 0 ? [`at most ${up} bytes/s up`] : []),
  ];
}
