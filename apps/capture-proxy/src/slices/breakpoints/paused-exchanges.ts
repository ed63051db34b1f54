import type { Breakpoint, PauseAll } from "@headworks/capture-contract";
import type { Content, Exchange, ExchangeView } from "#exchange/exchange.ts";
import { CONTINUE, type Observer, type Verdict } from "#exchange/phases.ts";
import type { Clock } from "#slice.ts";

/** Maximum of paused exchanges. Beyond it the oldest one that is not held continues. */
const MAX_PAUSED = 100;
/** Maximum time from the pause to the end of a hold. */
const MAX_HOLD_MS = 3_600_000;

export interface PausingRule {
  readonly id: string;
  readonly name: string;
  readonly timeoutSecs: number | null;
}

/** The body of a paused message; a `stream` is endless. */
export type PausedContent = Content | { readonly kind: "stream" };

/** An exchange waiting for a decision. */
export interface Paused {
  readonly id: string;
  readonly exchange: Exchange;
  readonly side: "request" | "response";
  readonly rule: PausingRule;
  readonly pausedAtMs: number;
  readonly deadlineMs: number | undefined;
  /** Undefined while the body is still arriving. */
  content: PausedContent | undefined;
}

interface Waiting extends Paused {
  deadlineMs: number | undefined;
  /** End of the hold that an editor requested. */
  heldUntilMs: number;
  readonly decide: (verdict: Verdict) => void;
  stopTimer: (() => void) | undefined;
}

export type PauseEnd = "timeout" | "too-many" | "ended";

/** Paused exchanges; each blocks its own client only. */
export class PausedExchanges implements Observer {
  readonly name = "breakpoints";
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #onChange: () => void;
  readonly #onEnd: (paused: Paused, reason: PauseEnd, message: string) => void;
  readonly #waiting = new Map<string, Waiting>();
  readonly #byExchange = new Map<string, Waiting>();
  readonly #answeredByHand = new WeakSet<Exchange>();

  constructor(parts: {
    clock: Clock;
    newId: () => string;
    onChange: () => void;
    /** Reports a pause that ended without a decision. */
    onEnd: (paused: Paused, reason: PauseEnd, message: string) => void;
  }) {
    this.#clock = parts.clock;
    this.#newId = parts.newId;
    this.#onChange = parts.onChange;
    this.#onEnd = parts.onEnd;
  }

  get count(): number {
    return this.#waiting.size;
  }

  list(): readonly Paused[] {
    return [...this.#waiting.values()];
  }

  find(id: string): Paused | undefined {
    return this.#waiting.get(id);
  }

  /** 1 for the oldest; 0 if no longer paused. */
  positionOf(id: string): number {
    return [...this.#waiting.keys()].indexOf(id) + 1;
  }

  /** Pauses an exchange until a decision, its timeout, or the limit of paused exchanges. */
  pause(
    exchange: Exchange,
    side: "request" | "response",
    rule: PausingRule,
    content: Promise<PausedContent>,
  ): Promise<Verdict> {
    const { promise, resolve } = Promise.withResolvers<Verdict>();
    const id = this.#newId();
    const { timeoutSecs } = rule;
    const pausedAtMs = this.#clock.now();
    const before = exchange.state;
    const waiting: Waiting = {
      id,
      exchange,
      side,
      rule,
      pausedAtMs,
      deadlineMs: undefined,
      heldUntilMs: 0,
      content: undefined,
      decide: (verdict) => {
        // The state of an exchange that has ended must stay.
        if (exchange.state.step === "paused") exchange.state = before;
        resolve(verdict);
      },
      stopTimer: undefined,
    };
    if (timeoutSecs !== null) this.#setDeadline(waiting, pausedAtMs + timeoutSecs * 1000);
    exchange.state = { step: "paused", at: side };
    this.#waiting.set(id, waiting);
    this.#byExchange.set(exchange.id, waiting);
    this.#makeRoom();
    this.#onChange();
    void content.then((arrived) => {
      waiting.content = arrived;
      if (this.#waiting.has(id)) this.#onChange();
    });
    return promise;
  }

  /** Removes the exchange and returns the function that resolves it; undefined if its pause has ended. */
  take(id: string): ((verdict: Verdict) => void) | undefined {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return undefined;
    this.#remove(waiting);
    return (verdict) => {
      if (verdict.kind === "respond") this.#answeredByHand.add(waiting.exchange);
      waiting.decide(verdict);
    };
  }

  /** Extends the pause by `forMs` up to {@link MAX_HOLD_MS}; undefined if it has ended. */
  hold(id: string, forMs: number): Paused | undefined {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return undefined;
    const { pausedAtMs, deadlineMs } = waiting;
    const untilMs = Math.min(this.#clock.now() + forMs, pausedAtMs + MAX_HOLD_MS);
    waiting.heldUntilMs = Math.max(waiting.heldUntilMs, untilMs);
    if (deadlineMs !== undefined && untilMs > deadlineMs) this.#setDeadline(waiting, untilMs);
    this.#onChange();
    return waiting;
  }

  #setDeadline(waiting: Waiting, deadlineMs: number): void {
    waiting.stopTimer?.();
    waiting.deadlineMs = deadlineMs;
    waiting.stopTimer = this.#clock.after(Math.max(0, deadlineMs - this.#clock.now()), () => {
      const waitedSecs = Math.round((this.#clock.now() - waiting.pausedAtMs) / 1000);
      this.#continueBy(waiting, "timeout", `after ${waitedSecs} s without a decision`);
    });
  }

  /** True if a user wrote the response. */
  isAnsweredByHand(exchange: Exchange): boolean {
    return this.#answeredByHand.has(exchange);
  }

  /** The client disconnected or the proxy is stopping. */
  onFinished({ id }: ExchangeView): void {
    const waiting = this.#byExchange.get(id);
    if (waiting === undefined) return;
    this.#remove(waiting);
    leaveTrace(waiting, ["ended while paused"]);
    waiting.decide(CONTINUE);
    this.#onEnd(waiting, "ended", "ended while paused: the client disconnected");
  }

  #makeRoom(): void {
    if (this.#waiting.size <= MAX_PAUSED) return;
    const all = [...this.#waiting.values()];
    const nowMs = this.#clock.now();
    const oldest = all.find(({ heldUntilMs }) => heldUntilMs <= nowMs) ?? all[0];
    if (oldest !== undefined) {
      this.#continueBy(oldest, "too-many", `because more than ${MAX_PAUSED} exchanges were paused`);
    }
  }

  #continueBy(waiting: Waiting, reason: PauseEnd, why: string): void {
    if (!this.#waiting.has(waiting.id)) return;
    this.#remove(waiting);
    leaveTrace(waiting, [`continued ${why}`]);
    waiting.decide(CONTINUE);
    this.#onEnd(waiting, reason, `continued unmodified ${why}`);
  }

  #remove(waiting: Waiting): void {
    waiting.stopTimer?.();
    this.#waiting.delete(waiting.id);
    this.#byExchange.delete(waiting.exchange.id);
    this.#onChange();
  }
}

/** Records the outcome of a pause in the exchange's trace. */
export function leaveTrace({ exchange, rule, side }: Paused, changes: readonly string[]): void {
  exchange.addTrace({ kind: "breakpoint", ruleId: rule.id, ruleName: rule.name, phase: side, changes });
}

/** Rule id of pauses without a rule. */
export const PAUSE_ALL = "pause-all";

/** The switch that pauses all exchanges no rule matches; deliberately not persisted. */
export class PauseAllSwitch {
  readonly #onChange: () => void;
  #isOn = false;
  #direction: Breakpoint["direction"] = "request";
  #rule: PausingRule = { id: PAUSE_ALL, name: "Pause all", timeoutSecs: null };

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** The pseudo-rule for messages of this side; undefined while off. */
  ruleFor(side: "request" | "response"): PausingRule | undefined {
    return this.#isOn && (this.#direction === "both" || this.#direction === side) ? this.#rule : undefined;
  }

  set(wanted: {
    readonly enabled?: boolean;
    readonly direction?: Breakpoint["direction"];
    readonly timeout_secs?: number | null;
  }): void {
    this.#isOn = wanted.enabled ?? true;
    if (this.#isOn) {
      this.#direction = wanted.direction ?? "request";
      this.#rule = { ...this.#rule, timeoutSecs: wanted.timeout_secs ?? null };
    }
    this.#onChange();
  }

  shown(): Omit<PauseAll, "paused_count"> {
    return { enabled: this.#isOn, direction: this.#direction, timeout_secs: this.#rule.timeoutSecs };
  }
}
