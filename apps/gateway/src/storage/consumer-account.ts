import { QuotaCounter } from "./quota-counter.ts";
import type { BudgetWindow } from "./state-store.ts";

/** Counters of past windows that are remembered per budget: two, so that a clock at a boundary may go to and fro. */
const REMEMBERED_WINDOWS = 2;

/** What is known of one consumer: its row, and the counters of its latest windows. */
export class ConsumerAccount {
  readonly name: string;
  /** Undefined until its row is there. */
  id: number | undefined;
  readonly #daily: QuotaCounter[] = [];
  readonly #monthly: QuotaCounter[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /**
   * The counter of a window; `id` is the account's, which has its row then. `mayForget` lets counters of past windows
   * go for a new one.
   */
  counter(id: number, { budget, windowStartS }: BudgetWindow, mayForget: boolean): QuotaCounter {
    const counters = budget === "daily" ? this.#daily : this.#monthly;
    const first = counters[0];
    if (first !== undefined && first.windowStartS === windowStartS) return first;
    const index = counters.findIndex((counter) => counter.windowStartS === windowStartS);
    if (index > 0) {
      const [found] = counters.splice(index, 1);
      if (found !== undefined) {
        counters.unshift(found);
        return found;
      }
    }
    const counter = new QuotaCounter(id, budget, windowStartS);
    counters.unshift(counter);
    if (mayForget) forgetOld(counters);
    return counter;
  }

  /** What is on disk is not known any more. */
  forgetAll(): void {
    this.#daily.length = 0;
    this.#monthly.length = 0;
  }
}

function forgetOld(counters: QuotaCounter[]): void {
  for (let last = counters.at(-1); counters.length > REMEMBERED_WINDOWS; last = counters.at(-1)) {
    if (last === undefined || last.isMoving) return;
    counters.pop();
  }
}
