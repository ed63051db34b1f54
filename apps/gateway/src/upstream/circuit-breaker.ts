import type { Breaker } from "@headworks/gateway-contract";
import { Trials } from "./trials.ts";

/** What a breaker tells of its changes; details as in the specification's table of events. */
export interface BreakerEvents {
  opened(detail: "consecutive_failures" | "error_ratio" | "half_open_probe_failed"): void;
  halfOpen(): void;
  closed(): void;
}

/** A breaker's parameters with their defaults filled in. */
export interface BreakerRules {
  readonly consecutiveFailures: number;
  readonly errorRatio: number;
  readonly errorVolume: number;
  readonly windowMs: number;
  readonly openMs: number;
  readonly halfOpenProbes: number;
}

export type BreakerState = "closed" | "open" | "half_open";

/** The document's block with the defaults. */
export function breakerRules(block: Breaker): BreakerRules {
  return {
    consecutiveFailures: block.consecutive_failures ?? 5,
    errorRatio: block.error_ratio ?? 0.5,
    errorVolume: block.error_volume ?? 20,
    windowMs: block.window_ms ?? 60_000,
    openMs: block.open_ms ?? 30_000,
    halfOpenProbes: block.half_open_probes ?? 1,
  };
}

/**
 * The circuit breaker of an upstream. Closed: attempts pass and are observed; a streak of failures or a share of
 * failures in a fixed window opens it. Open: nothing passes. The first attempt after `openMs` makes it half-open: so
 * many trials pass at a time; one success closes it, one failure opens it anew. A trial without a result for `openMs` gives
 * its place to another one; what it says later closes the breaker, but does not open it. Time is monotonic, so that a step
 * of the clock moves nothing.
 */
export class CircuitBreaker {
  #rules: BreakerRules;
  readonly #events: BreakerEvents;
  readonly #nowMs: () => number;
  #state: BreakerState = "closed";
  #streak = 0;
  #windowStartMs: number;
  #observations = 0;
  #failures = 0;
  #openUntilMs = 0;
  readonly #trials = new Trials();
  /**
   * Grows with every change of state: what was admitted before one says nothing about the time after it. Each trial has one
   * of its own.
   */
  #epoch: number;

  /** `epoch` is above every one that was given out before, for the same upstream. */
  constructor(rules: BreakerRules, events: BreakerEvents, nowMs: () => number, epoch = 0) {
    this.#epoch = epoch;
    this.#rules = rules;
    this.#events = events;
    this.#nowMs = nowMs;
    this.#windowStartMs = nowMs();
  }

  get state(): BreakerState {
    return this.#state;
  }

  get consecutiveFailures(): number {
    return this.#streak;
  }

  /** Milliseconds until a trial may pass; 0 unless it is open. */
  get opensAgainInMs(): number {
    return this.#state === "open" ? Math.max(0, this.#openUntilMs - this.#nowMs()) : 0;
  }

  /** Other parameters from now on; what was counted stays, and since when it is open. */
  adopt(rules: BreakerRules): void {
    this.#openUntilMs += rules.openMs - this.#rules.openMs;
    this.#rules = rules;
  }

  /** Lets an attempt pass, giving a pass to settle it with; or says after how many milliseconds to ask again. */
  admit(): { readonly epoch: number } | { readonly waitMs: number } {
    if (this.#state === "closed") return this;
    if (this.#state === "open") {
      const waitMs = this.#openUntilMs - this.#nowMs();
      if (waitMs > 0) return { waitMs };
      this.#change("half_open");
      this.#events.halfOpen();
    }
    const nowMs = this.#nowMs();
    const { halfOpenProbes, openMs } = this.#rules;
    const waitMs = this.#trials.waitMs(halfOpenProbes, openMs, nowMs);
    // A trial may end at any time, so at most the shortest wait that can be said in whole seconds.
    if (waitMs > 0) return { waitMs: Math.min(waitMs, 1000) };
    this.#epoch += 1;
    this.#trials.begin(this.#epoch, openMs, nowMs);
    return { epoch: this.#epoch };
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** An attempt ended; `undefined` says nothing about the upstream. */
  settle(epoch: number, ok: boolean | undefined): void {
    if (this.#state === "half_open") return this.#settleTrial(epoch, ok);
    if (epoch !== this.#epoch || this.#state === "open" || ok === undefined) return;
    this.#rollWindow();
    this.#observations += 1;
    if (ok) {
      this.#streak = 0;
      return;
    }
    this.#streak += 1;
    this.#failures += 1;
    if (this.#streak >= this.#rules.consecutiveFailures) return this.#open("consecutive_failures");
    const { errorVolume, errorRatio } = this.#rules;
    if (this.#observations >= errorVolume && this.#failures / this.#observations >= errorRatio) {
      this.#open("error_ratio");
    }
  }

  /** Opens it by hand for `openMs` from now, or closes it. One that is open already tells nobody. */
  force(state: "open" | "closed"): void {
    if (state === "closed") {
      if (this.#state !== "closed") this.#close();
    } else if (this.#state === "open") this.#openUntilMs = this.#nowMs() + this.#rules.openMs;
    else this.#open("consecutive_failures");
  }

  #settleTrial(epoch: number, ok: boolean | undefined): void {
    const end = this.#trials.end(epoch);
    if (end === "unknown") return;
    if (ok === true) this.#close();
    // What failed behind its time began long ago: the trial in its place decides.
    else if (ok === false && end === "in-time") this.#open("half_open_probe_failed");
  }

  #open(detail: "consecutive_failures" | "error_ratio" | "half_open_probe_failed"): void {
    this.#change("open");
    this.#openUntilMs = this.#nowMs() + this.#rules.openMs;
    this.#events.opened(detail);
  }

  #close(): void {
    this.#change("closed");
    this.#streak = 0;
    this.#observations = 0;
    this.#failures = 0;
    this.#windowStartMs = this.#nowMs();
    this.#events.closed();
  }

  #change(state: BreakerState): void {
    this.#state = state;
    this.#epoch += 1;
    this.#trials.clear();
  }

  #rollWindow(): void {
    const nowMs = this.#nowMs();
    if (nowMs - this.#windowStartMs < this.#rules.windowMs) return;
    this.#windowStartMs = nowMs;
    this.#observations = 0;
    this.#failures = 0;
  }
}
