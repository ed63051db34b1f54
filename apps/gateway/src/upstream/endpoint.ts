import type { PassiveHealth } from "@headworks/gateway-contract";
import { hostPortText } from "@headworks/host-patterns";
import { Trials } from "./circuit-breaker.ts";

/** Passive health parameters with defaults applied; undefined while it is off. */
export interface HealthRules {
  readonly consecutiveFailures: number;
  readonly failureRatio: number;
  readonly failureMinVolume: number;
  readonly windowMs: number;
  readonly ejectMs: number;
  readonly halfOpenProbes: number;
  readonly ejectBackoff: number;
}

const DEFAULT_EJECT_MS = 30_000;

export function healthRules(block: PassiveHealth): HealthRules {
  return {
    consecutiveFailures: block.consecutive_failures ?? 5,
    failureRatio: block.failure_ratio ?? 0.5,
    failureMinVolume: block.failure_min_volume ?? 20,
    windowMs: block.window_ms ?? 60_000,
    ejectMs: block.eject_ms ?? DEFAULT_EJECT_MS,
    halfOpenProbes: block.half_open_probes ?? 1,
    ejectBackoff: block.eject_backoff ?? 1,
  };
}

export type EndpointHealth = "healthy" | "ejected" | "half_open";

export interface EndpointOwner {
  ejected(endpoint: Endpoint): void;
  recovered(endpoint: Endpoint): void;
  /** Whether one more endpoint may be ejected. */
  mayEject(): boolean;
  readonly nowMs: () => number;
}

/** Limit of an ejection, however often an endpoint fails. */
const MAX_EJECTION_MS = 3_600_000;
/** Decay of the moving average of `peak_ewma`. */
const LATENCY_DECAY_MS = 10_000;
const FIRST_LATENCY_MS = 250;

/**
 * One endpoint: requests in flight, health, and rotation; survives generations under `address:port`. A streak of failures, or their share in a window with
 * enough volume, ejects it; after `eject_ms` the next picks are probes: one success ends the ejection, one failure
 * renews it for a full period. A probe without a result for `eject_ms` frees its slot; its late result can end the
 * ejection but not renew it.
 */
export class Endpoint {
  readonly address: string;
  readonly port: number;
  /** `address:port`, IPv6 in brackets. */
  readonly key: string;
  weight = 1;
  isDraining = false;
  /** When it was added; slow start counts from here. */
  sinceMs: number;
  /** State of smooth weighted round robin. */
  currentWeight = 0;
  /** Attempts between dispatch and response head. */
  inFlight = 0;
  /** Finished attempts by status class, `2xx` at 2; those without a response at 0. */
  readonly attemptsByClass: number[] = [0, 0, 0, 0, 0, 0];
  readonly #owner: EndpointOwner;
  #rules: HealthRules | undefined;
  #health: EndpointHealth = "healthy";
  #streak = 0;
  #windowStartMs: number;
  #observations = 0;
  #failures = 0;
  #ejectedUntilMs = 0;
  #ejections = 0;
  readonly #probes = new Trials();
  #probeSuccesses = 0;
  #listedDrain = false;
  /** Increases with every change of health: results of earlier attempts are ignored. Each probe has its own epoch. */
  #epoch = 0;
  #latencyMs = FIRST_LATENCY_MS;
  #latencyAtMs: number;

  constructor(address: string, port: number, owner: EndpointOwner) {
    this.address = address;
    this.port = port;
    this.key = endpointKey(address, port);
    this.#owner = owner;
    const nowMs = owner.nowMs();
    this.sinceMs = nowMs;
    this.#windowStartMs = nowMs;
    this.#latencyAtMs = nowMs;
  }

  get health(): EndpointHealth {
    return this.#health;
  }

  /** Applies the parameters of the running generation. Without rules, ejections by earlier rules end. */
  adopt(rules: HealthRules | undefined): void {
    const hadRules = this.#rules !== undefined;
    this.#rules = rules;
    if (hadRules && rules === undefined && this.#health !== "healthy") this.#recover();
  }

  /** Applies `drain` of the document; only a change there overrides an operator's change. */
  adoptDrain(drain: boolean): void {
    if (drain === this.#listedDrain) return;
    this.#listedDrain = drain;
    this.isDraining = drain;
  }

  /** In rotation now; an ejected endpoint whose time is over accepts as many picks as probes are allowed. */
  isAvailable(nowMs: number): boolean {
    if (this.isDraining) return false;
    if (this.#health === "healthy") return true;
    if (this.#health === "ejected") return nowMs >= this.#ejectedUntilMs;
    return this.#probes.waitMs(this.#rules?.halfOpenProbes ?? 1, this.#probeMs, nowMs) === 0;
  }

  /** A pick; for an ejected endpoint, a probe. */
  picked(nowMs: number): void {
    if (this.#health !== "ejected" || nowMs < this.#ejectedUntilMs) return;
    this.#become("half_open");
  }

  /**
   * Expected cost of one more request: the peak-sensitive latency average times requests in flight. It decays while
   * nothing is sent, so that one slow response excludes an endpoint for a limited time only.
   */
  costAt(nowMs: number): number {
    return this.#latencyMs * Math.exp(-(nowMs - this.#latencyAtMs) / LATENCY_DECAY_MS) * (this.inFlight + 1);
  }

  /** An attempt starts. Exactly one of `answered`, `failed` and `abandoned` follows, with the epoch. */
  dispatched(): number {
    this.inFlight += 1;
    if (this.#health === "half_open") {
      this.#epoch += 1;
      this.#probes.begin(this.#epoch, this.#probeMs, this.#owner.nowMs());
    }
    return this.#epoch;
  }

  /** The response head arrived; a status of 500 and above counts as a failure. */
  answered(epoch: number, status: number, latencyMs: number): void {
    this.inFlight -= 1;
    this.#count(Math.floor(status / 100));
    this.#observeLatency(latencyMs);
    this.#observe(epoch, status < 500);
  }

  /** No response head: refused, reset, timed out, not HTTP. */
  failed(epoch: number): void {
    this.inFlight -= 1;
    this.#count(0);
    this.#observe(epoch, false);
  }

  /** The gateway abandoned the attempt (client gone, hedge lost): neither success nor failure. */
  abandoned(epoch: number): void {
    this.inFlight -= 1;
    if (this.#health === "half_open") this.#probes.end(epoch);
  }

  /**
   * A response below 500 came to its end, or its client left. Only a complete response ends a streak of failures: an endpoint that aborts each response is no better than one
   * that sends none.
   */
  completed(epoch: number): void {
    if (epoch === this.#epoch && this.#health === "healthy") this.#streak = 0;
  }

  /**
   * The response body broke off: counts against the endpoint, not against the breaker, and turns the success counted
   * at the head into a failure.
   */
  bodyBroke(): void {
    if (this.#health === "healthy") this.#countFailure();
  }

  /**
   * An active probe ended. It shares the streak of failures and does not count in the window; enough successes in a
   * row end an ejection early, failures during an ejection do not prolong it.
   */
  probed(ok: boolean, thresholds: { readonly success: number; readonly failure: number }): void {
    this.#probeSuccesses = ok ? this.#probeSuccesses + 1 : 0;
    if (this.#health !== "healthy") {
      if (this.#probeSuccesses >= thresholds.success) this.#recover();
      return;
    }
    this.#streak = ok ? 0 : this.#streak + 1;
    if (this.#streak >= thresholds.failure) this.#eject();
  }

  /** Ejects it or ends an ejection at an operator's request. */
  force(health: "ejected" | "healthy"): void {
    if (health === "ejected") this.#eject(true);
    else if (this.#health !== "healthy") this.#recover();
  }

  #count(statusClass: number): void {
    this.attemptsByClass[statusClass] = (this.attemptsByClass[statusClass] ?? 0) + 1;
  }

  #observe(epoch: number, ok: boolean): void {
    if (this.#health === "half_open") return this.#observeProbe(epoch, ok);
    if (epoch !== this.#epoch || this.#health === "ejected") return;
    const rules = this.#rules;
    if (rules === undefined) return;
    const nowMs = this.#owner.nowMs();
    if (nowMs - this.#windowStartMs >= rules.windowMs) this.#startWindow(nowMs);
    this.#observations += 1;
    if (!ok) this.#countFailure();
  }

  /** How long a probe holds its slot. */
  get #probeMs(): number {
    return this.#rules?.ejectMs ?? DEFAULT_EJECT_MS;
  }

  #observeProbe(epoch: number, ok: boolean): void {
    const end = this.#probes.end(epoch);
    if (end === "unknown") return;
    if (ok) this.#recover();
    // A late failure of an overdue probe is outdated: its replacement decides.
    else if (end === "in-time") this.#eject(true);
  }

  /** Its success was counted before, perhaps in an earlier window. */
  #countFailure(): void {
    const rules = this.#rules;
    if (rules === undefined) return;
    this.#streak += 1;
    this.#failures += 1;
    this.#observations = Math.max(this.#observations, this.#failures);
    const isStreak = this.#streak >= rules.consecutiveFailures;
    const isShare =
      this.#observations >= rules.failureMinVolume && this.#failures / this.#observations >= rules.failureRatio;
    if (isStreak || isShare) this.#eject();
  }

  #startWindow(nowMs: number): void {
    this.#windowStartMs = nowMs;
    this.#observations = 0;
    this.#failures = 0;
  }

  #eject(again = false): void {
    if (!again && !this.#owner.mayEject()) return;
    const rules = this.#rules;
    const wasHealthy = this.#health === "healthy";
    const backoff = (rules?.ejectBackoff ?? 1) ** this.#ejections;
    const ejectMs = Math.min((rules?.ejectMs ?? DEFAULT_EJECT_MS) * backoff, MAX_EJECTION_MS);
    this.#ejectedUntilMs = this.#owner.nowMs() + ejectMs;
    this.#ejections += 1;
    this.#probeSuccesses = 0;
    this.#become("ejected");
    if (wasHealthy) this.#owner.ejected(this);
  }

  #recover(): void {
    const nowMs = this.#owner.nowMs();
    this.#streak = 0;
    this.#ejections = 0;
    this.#startWindow(nowMs);
    this.sinceMs = nowMs;
    this.#become("healthy");
    this.#owner.recovered(this);
  }

  #become(health: EndpointHealth): void {
    this.#health = health;
    this.#probes.clear();
    this.#epoch += 1;
  }

  /** A peak counts at once and decays; other latencies move the average slowly. */
  #observeLatency(latencyMs: number): void {
    const nowMs = this.#owner.nowMs();
    const weight = Math.exp(-(nowMs - this.#latencyAtMs) / LATENCY_DECAY_MS);
    this.#latencyAtMs = nowMs;
    this.#latencyMs = latencyMs > this.#latencyMs ? latencyMs : this.#latencyMs * weight + latencyMs * (1 - weight);
  }
}

/** `address:port`, an IPv6 address in brackets. */
export function endpointKey(address: string, port: number): string {
  return hostPortText(address, port);
}
