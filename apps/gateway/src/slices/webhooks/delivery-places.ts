/** How many deliveries may run at once (delivery rule 6). */
export const MOST_DELIVERIES = 32;

/** Counts the deliveries that run, and queues those that may wait for a place. */
export class DeliveryPlaces {
  readonly #capacity: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;

  constructor(capacity: number = MOST_DELIVERIES) {
    this.#capacity = capacity;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a place if one is free. */
  take(): boolean {
    if (this.#taken >= this.#capacity) return false;
    this.#taken += 1;
    return true;
  }

  /** Takes a place, waiting for one in order of arrival. */
  async takeLater(): Promise<void> {
    if (this.take()) return;
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.#waiting.push(() => resolve(undefined));
    await promise;
  }

  /** Gives a place back; it goes to who waits longest. */
  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#taken -= 1;
    else next();
  }
}
