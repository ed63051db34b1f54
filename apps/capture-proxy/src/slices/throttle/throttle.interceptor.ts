import { randomInt } from "node:crypto";
import { compileHostPatterns, type HostMatcher } from "@headworks/host-patterns";
import { BandwidthLimiter, type ThrottledPace } from "#exchange/bandwidth-limiter.ts";
import type { Exchange } from "#exchange/exchange.ts";
import { CONTINUE, type Interceptor, type Observer, type Target, type Verdict } from "#exchange/phases.ts";
import type { Clock } from "#slice.ts";
import { NO_THROTTLE, type Profile, type StoredThrottle } from "./throttle-profile.ts";

const STEPS = 2 ** 32;

const evenRandom = (): number => randomInt(STEPS) / STEPS;

/** The bandwidth limiter that all throttled connections share, with the current profile. */
export class ThrottledLimiter {
  readonly pace: ThrottledPace;
  readonly #random: () => number;
  #profile: Profile = NO_THROTTLE;
  #isOn = false;
  #matcher: HostMatcher | undefined;

  /** `random` returns numbers in [0, 1). */
  constructor(clock: Clock, random: () => number = evenRandom) {
    this.pace = { down: new BandwidthLimiter(clock), up: new BandwidthLimiter(clock) };
    this.#random = random;
  }

  get profile(): Profile {
    return this.#profile;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** Transfers in progress get the new bandwidth at once. */
  set({ profile, enabled }: StoredThrottle): void {
    this.#profile = profile;
    this.#isOn = enabled;
    this.#matcher = profile.hosts.length === 0 ? undefined : compileHostPatterns(profile.hosts, "ignored");
    this.pace.down.setRate(enabled ? profile.downloadBytesPerSecond : 0);
    this.pace.up.setRate(enabled ? profile.uploadBytesPerSecond : 0);
  }

  appliesTo(host: string): boolean {
    return this.#matcher === undefined || this.#matcher.find(host) !== undefined;
  }

  passage(): Passage {
    const { latencyMs, jitterMs, lossPercent, lossMode } = this.#profile;
    if (!this.#isOn) return { kind: "pass", delayMs: 0 };
    if (lossPercent > 0 && this.#random() * 100 < lossPercent) return { kind: "lost", mode: lossMode };
    const jitter = jitterMs === 0 ? 0 : (this.#random() * 2 - 1) * jitterMs;
    return { kind: "pass", delayMs: Math.max(0, latencyMs + jitter) };
  }
}

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
  readonly #limiter: ThrottledLimiter;
  readonly #clock: Clock;
  /** Lost requests whose clients still wait, by exchange id. */
  readonly #stalled = new Map<string, () => void>();

  constructor(limiter: ThrottledLimiter, clock: Clock) {
    this.#limiter = limiter;
    this.#clock = clock;
  }

  get stalledCount(): number {
    return this.#stalled.size;
  }

  releaseStalled(): void {
    const stalled = [...this.#stalled.values()];
    this.#stalled.clear();
    for (const release of stalled) release();
  }

  onTarget(target: Target): Verdict | Promise<Verdict> {
    const limiter = this.#limiter;
    if (!limiter.appliesTo(target.host)) return CONTINUE;
    target.pace = limiter.pace;
    const passage = limiter.passage();
    if (passage.kind === "pass") return this.#delayed(passage.delayMs);
    this.lostCount += 1;
    return { kind: "abort", reason: `Lost by the throttle profile ${limiter.profile.name}`, closes: true };
  }

  onRequestHead(exchange: Exchange): Verdict | Promise<Verdict> {
    const limiter = this.#limiter;
    if (!limiter.appliesTo(exchange.request.host)) return CONTINUE;
    exchange.pace = limiter.pace;
    if (!limiter.isOn) return CONTINUE;
    const passage = limiter.passage();
    if (passage.kind === "lost") return this.#lost(exchange, passage.mode);
    this.#trace(exchange, shaping(limiter, passage.delayMs));
    return this.#delayed(passage.delayMs);
  }

  onFinished({ id }: { readonly id: string }): void {
    if (this.#stalled.size > 0) this.#stalled.delete(id);
  }

  #lost(exchange: Exchange, mode: "reset" | "stall"): Verdict | Promise<Verdict> {
    const { name, lossPercent } = this.#limiter.profile;
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
    const { name } = this.#limiter.profile;
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

type Passage =
  | { readonly kind: "pass"; readonly delayMs: number }
  | { readonly kind: "lost"; readonly mode: "reset" | "stall" };
