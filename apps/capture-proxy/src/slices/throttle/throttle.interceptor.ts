import type { Exchange } from "#exchange/exchange.ts";
import { CONTINUE } from "#exchange/phases.ts";
import type { Interceptor, Observer, Target, Verdict } from "#exchange/phases.ts";
import type { Clock } from "#slice.ts";
import type { ThrottledLimiter } from "./throttled-limiter.ts";

/** Stands in for the rule id in traces. */
const RULE_ID = "throttle";

/** Timers have whole milliseconds, counted from the start of the event loop's turn; the rest of a delay is polled. */
const TIMER_LATE_MS = 1.5;

/**
 * Attaches exchanges and tunnels to the shared limiter. Every exchange of a matching host is attached, limited or not,
 * so that a profile change reaches transfers in progress.
 */
export class ThrottleInterceptor implements Interceptor, Observer {
  readonly name = "throttle";
  delayedCount = 0;
  lostCount = 0;
  readonly #line: ThrottledLimiter;
  readonly #clock: Clock;
  /** Lost requests whose clients still wait, by exchange id. */
  readonly #stalled = new Map<string, () => void>();

  constructor(line: ThrottledLimiter, clock: Clock) {
    this.#line = line;
    this.#clock = clock;
  }

  get stalledCount(): number {
    return this.#stalled.size;
  }

  /** Releases stalled requests after a change of the profile. */
  releaseStalled(): void {
    const stalled = [...this.#stalled.values()];
    this.#stalled.clear();
    for (const release of stalled) release();
  }

  onTarget(target: Target): Verdict | Promise<Verdict> {
    const line = this.#line;
    if (!line.appliesTo(target.host)) return CONTINUE;
    target.pace = line.pace;
    const passage = line.passage();
    if (passage.kind === "pass") return this.#delayed(passage.delayMs);
    this.lostCount += 1;
    return { kind: "abort", reason: `Lost by the throttle profile ${line.profile.name}`, closes: true };
  }

  onRequestHead(exchange: Exchange): Verdict | Promise<Verdict> {
    const line = this.#line;
    if (!line.appliesTo(exchange.request.host)) return CONTINUE;
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
    this.#trace(exchange, [`lost (${lossPercent}% packet loss): ${mode === "reset" ? "reset" : "stalled"}`]);
    if (mode === "reset") return { kind: "abort", reason: `Lost by the throttle profile ${name}`, closes: true };
    const { promise, resolve } = Promise.withResolvers<Verdict>();
    this.#stalled.set(exchange.id, () => resolve(CONTINUE));
    return promise;
  }

  #delayed(delayMs: number): Verdict | Promise<Verdict> {
    if (delayMs === 0) return CONTINUE;
    this.delayedCount += 1;
    const clock = this.#clock;
    const dueMs = clock.monotonic() + delayMs;
    return new Promise((resolve) => {
      const look = (): void => {
        const leftMs = dueMs - clock.monotonic();
        if (leftMs > TIMER_LATE_MS) clock.after(leftMs - TIMER_LATE_MS, look);
        else if (leftMs > 0) clock.soon(look);
        else resolve(CONTINUE);
      };
      look();
    });
  }

  #trace(exchange: Exchange, changes: readonly string[]): void {
    const { name } = this.#line.profile;
    exchange.addTrace({ kind: "throttle", ruleId: RULE_ID, ruleName: name, phase: "request", changes });
  }
}

function shaping({ profile }: ThrottledLimiter, delayMs: number): string[] {
  const { downloadBytesPerSecond: down, uploadBytesPerSecond: up } = profile;
  return [
    ...(delayMs > 0 ? [`delayed by ${Math.round(delayMs)} ms`] : []),
    ...(down > 0 ? [`at most ${down} bytes/s down`] : []),
    ...(up > 0 ? [`at most ${up} bytes/s up`] : []),
  ];
}
