import type { BudgetName } from "./state-store.ts";
import { counterKey } from "./store-messages.ts";

/** Maximum value of a counter. */
const MOST = 2n ** 64n - 1n;

/**
 * A budget of a consumer in one window: the durable value, and units in the group in flight and the group being
 * collected.
 */
export class QuotaCounter {
  readonly #key: bigint;
  readonly #windowStart: bigint;
  /** Seconds since 1970. */
  readonly windowStartS: number;
  #durable: bigint | undefined;
  /** A load was requested. */
  isAsked = false;
  /** The durable value, with units of the group in flight and the one being collected. */
  #used = 0n;
  #gathered = 0;
  #sent = 0;
  /** Corrections by operators in the group being collected and the one in flight. */
  #gatheredShift = 0n;
  #sentShift = 0n;
  /** It is part of the group being collected. */
  isGathered = false;

  constructor(consumerId: number, budget: BudgetName, windowStartS: number) {
    this.#key = counterKey(consumerId, budget);
    this.#windowStart = BigInt(windowStartS);
    this.windowStartS = windowStartS;
  }

  /** The durable value; undefined until loaded. */
  get durable(): bigint | undefined {
    return this.#durable;
  }

  get isFull(): boolean {
    return this.#used === MOST;
  }

  /** Parts of it are not durable yet; a reload would lose them. */
  get isMoving(): boolean {
    return this.isGathered || this.#sent > 0 || this.#sentShift !== 0n;
  }

  isUsedUp(limit: bigint): boolean {
    return this.#used >= limit;
  }

  /** True if a unit is available whatever the outcome of the group in flight. */
  hasRoom(limit: bigint): boolean {
    if (this.#used >= limit) return false;
    // Units freed by a correction in flight are not available before its commit.
    return this.#sentShift >= 0n || this.#used - this.#sentShift < limit;
  }

  take(): void {
    this.#used += 1n;
    this.#gathered += 1;
  }

  /** Applies a manual correction, clamped to the range. */
  shift(delta: bigint): void {
    const next = withinCounter(this.#used + delta);
    this.#gatheredShift += next - this.#used;
    this.#used = next;
  }

  loaded(durable: bigint): void {
    this.#durable = durable;
    this.#used = durable;
  }

  /**
   * Moves collected units into flight: writes its row of a {@link import("./store-messages.ts").GroupMessage}'s
   * `writes`.
   */
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

  /** Writes its row of `loads`. */
  askIn(rows: BigInt64Array, index: number): void {
    rows[index * 2] = this.#key;
    rows[index * 2 + 1] = this.#windowStart;
  }

  /** The group in flight was committed. */
  settle(): void {
    this.#durable = (this.#durable ?? 0n) + BigInt(this.#sent) + this.#sentShift;
    this.#sent = 0;
    this.#sentShift = 0n;
  }

  /** The group in flight failed. Collected units stay, clamped to the range. */
  takeBack(): void {
    const used = this.#used - BigInt(this.#sent) - this.#sentShift;
    this.#used = withinCounter(used);
    this.#gatheredShift += this.#used - used;
    this.#sent = 0;
    this.#sentShift = 0n;
  }

  /** Discards collected units. */
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
