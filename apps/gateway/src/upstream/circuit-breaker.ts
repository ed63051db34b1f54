import type { Breaker } from "@headworks/gateway-contract";

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
 * many trials pass at a time; one success closes it, one failure opens it anew. Time is monotonic, so that a step of
 * the clock moves nothing.
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
  #trials = 0;
  /** Grows with every change of state: what was admitted before one says nothing about the time after it. */
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
      this.#trials = 0;
      this.#events.halfOpen();
    }
    // Nobody knows when a trial ends, so the shortest wait that can be said in whole seconds.
    if (this.#trials >= this.#rules.halfOpenProbes) return { waitMs: 1000 };
    this.#trials += 1;
    return this;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** An attempt ended; `undefined` says nothing about the upstream. */
  settle(epoch: number, ok: boolean | undefined): void {
    if (epoch !== this.#epoch) return;
    if (this.#state === "half_open") return this.#settleTrial(ok);
    if (this.#state === "open" || ok === undefined) return;
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

  #settleTrial(ok: boolean | undefined): void {
    this.#trials -= 1;
    if (ok === true) this.#close();
    else if (ok === false) this.#open("half_open_probe_failed");
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
  }

  #rollWindow(): void {
    const nowMs = this.#nowMs();
    if (nowMs - this.#windowStartMs < this.#rules.windowMs) return;
    this.#windowStartMs = nowMs;
    this.#observations = 0;
    this.#failures = 0;
  }
}
