import type { Content, Exchange } from "#exchange/exchange.ts";
import { CONTINUE } from "#exchange/phases.ts";
import type { Verdict } from "#exchange/phases.ts";
import type { Clock } from "#slice.ts";

/** Most exchanges that wait at once. One more lets the oldest that is not held continue. */
const MAX_PAUSED = 100;
/** An exchange can be held until this long after it was paused. */
const MAX_HOLD_MS = 3_600_000;

/** The rule that paused an exchange. */
export interface PausingRule {
  readonly id: string;
  readonly name: string;
  readonly timeoutSecs: number | null;
}

/** The body of a message that waits; a `stream` has no end that could be waited for. */
export type PausedContent = Content | { readonly kind: "stream" };

/** An exchange that waits for a decision. */
export interface Paused {
  readonly id: string;
  readonly exchange: Exchange;
  readonly side: "request" | "response";
  readonly rule: PausingRule;
  readonly pausedAtMs: number;
  readonly deadlineMs: number | undefined;
  /** The body of the message that waits; undefined while it is still arriving. */
  content: PausedContent | undefined;
}

interface Waiting extends Paused {
  deadlineMs: number | undefined;
  /** An editor holds it until then. */
  heldUntilMs: number;
  readonly decide: (verdict: Verdict) => void;
  stopTimer: (() => void) | undefined;
}

/** Why a pause ended without a decision. */
export type PauseEnd = "timeout" | "too-many" | "ended";

/** Exchanges that wait for a person, each holding up nobody but its own client. */
export class PausedExchanges {
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #onChange: () => void;
  readonly #onEnd: (paused: Paused, reason: PauseEnd, message: string) => void;
  /** Oldest first. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #byExchange = new Map<string, Waiting>();
  readonly #answeredByHand = new WeakSet<Exchange>();

  constructor(parts: {
    clock: Clock;
    newId: () => string;
    onChange: () => void;
    /** A pause is over without a decision; the message is for people. */
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

  /** Oldest first. */
  list(): readonly Paused[] {
    return [...this.#waiting.values()];
  }

  find(id: string): Paused | undefined {
    return this.#waiting.get(id);
  }

  /** 1 is the oldest; 0 when it does not wait any more. */
  positionOf(id: string): number {
    return [...this.#waiting.keys()].indexOf(id) + 1;
  }

  /** Holds an exchange until somebody decides, its time is up, or it is the oldest of too many. */
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
        // The end of the exchange is the last word.
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

  /** Takes it off the list and leaves the verdict for later; undefined when its pause was over already. */
  take(id: string): ((verdict: Verdict) => void) | undefined {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return undefined;
    this.#remove(waiting);
    return (verdict) => {
      if (verdict.kind === "respond") this.#answeredByHand.add(waiting.exchange);
      waiting.decide(verdict);
    };
  }

  /** Lets it wait for `forMs` from now on, as far as {@link MAX_HOLD_MS} allows; gives undefined when its pause is over. */
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

  /** Its answer was written by whoever decided on it. */
  isAnsweredByHand(exchange: Exchange): boolean {
    return this.#answeredByHand.has(exchange);
  }

  /** The exchange is over: its client went away, or the proxy stops. */
  exchangeEnded(exchangeId: string): void {
    const waiting = this.#byExchange.get(exchangeId);
    if (waiting === undefined) return;
    this.#remove(waiting);
    leaveTrace(waiting, ["ended while it waited"]);
    waiting.decide(CONTINUE);
    this.#onEnd(waiting, "ended", "ended while it waited: its client went away");
  }

  #makeRoom(): void {
    if (this.#waiting.size <= MAX_PAUSED) return;
    const all = [...this.#waiting.values()];
    const nowMs = this.#clock.now();
    const oldest = all.find(({ heldUntilMs }) => heldUntilMs <= nowMs) ?? all[0];
    if (oldest !== undefined) {
      this.#continueBy(oldest, "too-many", `because more than ${MAX_PAUSED} exchanges waited`);
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

/** Tells the exchange's record what became of a pause. */
export function leaveTrace({ exchange, rule, side }: Paused, changes: readonly string[]): void {
  exchange.addTrace({ kind: "breakpoint", ruleId: rule.id, ruleName: rule.name, phase: side, changes });
}
