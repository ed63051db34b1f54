import type { Breaker } from "@headworks/gateway-contract";

/**
 * The trials of a breaker or endpoint after failures: a limited number at a time, each with a slot for a bounded
 * time, so that one without a result does not block other requests. Each ends once. Times are monotonic.
 */
export class Trials {
  /** Oldest first. */
  #inTime: Trial[] = [];
  /** Epochs of trials that lost their slot. */
  #overdue: number[] = [];

  /** Milliseconds until another trial may begin; 0 for now. */
  waitMs(max: number, limitMs: number, nowMs: number): number {
    const [oldest] = this.#inTime;
    if (oldest === undefined || this.#inTime.length < max) return 0;
    return Math.max(0, oldest.startMs + limitMs - nowMs);
  }

  /** Starts a trial in place of expired ones; `epoch` is unique. */
  begin(epoch: number, limitMs: number, nowMs: number): void {
    while (this.#inTime[0] !== undefined && this.#inTime[0].startMs + limitMs <= nowMs) {
      this.#overdue.push(this.#inTime[0].epoch);
      this.#inTime.shift();
    }
    this.#inTime.push({ epoch, startMs: nowMs });
  }

  end(epoch: number): TrialEnd {
    const at = this.#inTime.findIndex((trial) => trial.epoch === epoch);
    if (at !== -1) {
      this.#inTime.splice(at, 1);
      return "in-time";
    }
    const index = this.#overdue.indexOf(epoch);
    if (index === -1) return "unknown";
    this.#overdue.splice(index, 1);
    return "overdue";
  }

  /** Drops all trials; their results are ignored. */
  clear(): void {
    this.#inTime = [];
    this.#overdue = [];
  }
}

/** Events of a breaker, with details as in the specification's table of events. */
export interface BreakerEvents {
  opened(detail: "consecutive_failures" | "error_ratio" | "half_open_probe_failed"): void;
  halfOpen(): void;
  closed(): void;
}

/** Breaker parameters with defaults applied. */
export interface BreakerRules {
  readonly consecutiveFailures: number;
  readonly errorRatio: number;
  readonly errorVolume: number;
  readonly windowMs: number;
  readonly openMs: number;
  readonly halfOpenProbes: number;
}

export type BreakerState = "closed" | "open" | "half_open";

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
 * The circuit breaker of an upstream. Closed: attempts pass and are observed; a streak of failures, or their share in
 * a fixed window, opens it. Open: nothing passes. The first attempt after `openMs` makes it half-open, which allows a
 * limited number of trials: one success closes it, one failure opens it again. A trial without a result for `openMs`
 * frees its slot; its late result can close the breaker but not open it. Time is monotonic, so that clock changes
 * have no effect.
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
  /** Increases with every state change: older results are ignored. Each trial has its own epoch. */
  #epoch: number;

  /** `epoch` is greater than every epoch used before for the same upstream. */
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

  /** Milliseconds until a trial may pass; 0 unless open. */
  get opensAgainInMs(): number {
    return this.#state === "open" ? Math.max(0, this.#openUntilMs - this.#nowMs()) : 0;
  }

  /** Applies other parameters; counts and the time of opening are kept. */
  adopt(rules: BreakerRules): void {
    this.#openUntilMs += rules.openMs - this.#rules.openMs;
    this.#rules = rules;
  }

  /** Returns a pass to settle the attempt with, or the milliseconds after which to try again. */
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
    // A trial may end at any time, so at most the shortest wait in whole seconds.
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

  /** Opens it for `openMs` from now, or closes it, at an operator's request. No event if it is open already. */
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
    // A late failure of an overdue trial is outdated: its replacement decides.
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

/** When a trial ended: within its time, after it, or as an unknown trial. */
type TrialEnd = "in-time" | "overdue" | "unknown";

interface Trial {
  readonly epoch: number;
  readonly startMs: number;
}
