import type { BudgetName } from "./state-store.ts";
import { counterKey } from "./store-messages.ts";

/** The most a counter counts to. */
const MOST = 2n ** 64n - 1n;

/** One budget of a consumer in one window: what is on disk of it, what is on its way there, and what gathers. */
export class QuotaCounter {
  readonly #key: bigint;
  readonly #windowStart: bigint;
  /** Seconds since 1970. */
  readonly windowStartS: number;
  #durable: bigint | undefined;
  /** Reading it was asked for. */
  isAsked = false;
  /** What is on disk, and the units of the group on its way and of the one that gathers. */
  #used = 0n;
  #gathered = 0;
  #sent = 0;
  /** What operators' corrections change, in the group that gathers and in the one on its way. */
  #gatheredShift = 0n;
  #sentShift = 0n;
  /** It is in the group that gathers. */
  isGathered = false;

  constructor(consumerId: number, budget: BudgetName, windowStartS: number) {
    this.#key = counterKey(consumerId, budget);
    this.#windowStart = BigInt(windowStartS);
    this.windowStartS = windowStartS;
  }

  /** What is on disk; undefined until it was read. */
  get durable(): bigint | undefined {
    return this.#durable;
  }

  /** It counts no further. */
  get isFull(): boolean {
    return this.#used === MOST;
  }

  /** Something of it is not on disk yet: read again from there, it would lack that. */
  get isMoving(): boolean {
    return this.isGathered || this.#sent > 0 || this.#sentShift !== 0n;
  }

  isUsedUp(limit: bigint): boolean {
    return this.#used >= limit;
  }

  /** Whether a unit is left, whatever becomes of the group on its way. */
  hasRoom(limit: bigint): boolean {
    if (this.#used >= limit) return false;
    // Units that are free only when a correction on its way reaches the disk are not there yet.
    return this.#sentShift >= 0n || this.#used - this.#sentShift < limit;
  }

  take(): void {
    this.#used += 1n;
    this.#gathered += 1;
  }

  /** Changes it by hand, as far as its range goes. */
  shift(delta: bigint): void {
    const next = withinCounter(this.#used + delta);
    this.#gatheredShift += next - this.#used;
    this.#used = next;
  }

  /** It was read from the disk. */
  loaded(durable: bigint): void {
    this.#durable = durable;
    this.#used = durable;
  }

  /** What gathers goes on its way: its row of a {@link import("./store-messages.ts").GroupMessage}'s `writes`. */
  writeTo(rows: BigInt64Array, index: number): void {
    rows[index * 3] = this.#key;
    rows[index * 3 + 1] = this.#windowStart;
    rows[index * 3 + 2] = this.#used;
    this.#sent = this.#gathered;
    this.#gathered = 0;
    this.#sentShift = this.#gatheredShift;
    this.#gatheredShift = 0n;
    this.isGathered = false;
  }

  /** Its row of `loads`. */
  askIn(rows: BigInt64Array, index: number): void {
    rows[index * 2] = this.#key;
    rows[index * 2 + 1] = this.#windowStart;
  }

  /** What was sent is on disk. */
  settle(): void {
    this.#durable = (this.#durable ?? 0n) + BigInt(this.#sent) + this.#sentShift;
    this.#sent = 0;
    this.#sentShift = 0n;
  }

  /** What was sent is not on disk. What gathers meanwhile stays, as far as the counter's range goes. */
  takeBack(): void {
    const used = this.#used - BigInt(this.#sent) - this.#sentShift;
    this.#used = withinCounter(used);
    this.#gatheredShift += this.#used - used;
    this.#sent = 0;
    this.#sentShift = 0n;
  }

  /** What gathers will not be sent. */
  dropGathered(): void {
    this.#used -= BigInt(this.#gathered) + this.#gatheredShift;
    this.#gathered = 0;
    this.#gatheredShift = 0n;
    this.isGathered = false;
  }
}

function withinCounter(used: bigint): bigint {
  return used < 0n ? 0n : used > MOST ? MOST : used;
}
