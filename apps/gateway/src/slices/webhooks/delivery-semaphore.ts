/** How many deliveries may run at once (delivery rule 6). */
export const MAX_DELIVERIES = 32;
/** How many of the places those that wait may fill: a replay to many slow targets must not crowd out new events. */
const MAX_QUEUED = 8;

/** Counts the deliveries that run, and queues those that may wait for a place. */
export class DeliverySemaphore {
  readonly #capacity: number;
  readonly #queuedCapacity: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;
  #queuedTaken = 0;

  constructor(capacity: number = MAX_DELIVERIES, queuedCapacity: number = MAX_QUEUED) {
    this.#capacity = capacity;
    this.#queuedCapacity = queuedCapacity;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a place if one is free; give it back with {@link release}. */
  take(): boolean {
    if (this.#taken >= this.#capacity) return false;
    this.#taken += 1;
    return true;
  }

  /** Takes a place, waiting for one in order of arrival; give it back with {@link releaseQueued}. */
  async acquireQueued(): Promise<void> {
    if (this.#waiting.length > 0 || !this.#tryAcquireQueued()) {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      this.#waiting.push(() => resolve(undefined));
      await promise;
    }
  }

  release(): void {
    this.#taken -= 1;
    this.#admit();
  }

  releaseQueued(): void {
    this.#queuedTaken -= 1;
    this.release();
  }

  #tryAcquireQueued(): boolean {
    if (this.#queuedTaken >= this.#queuedCapacity || !this.take()) return false;
    this.#queuedTaken += 1;
    return true;
  }

  #admit(): void {
    while (this.#waiting.length > 0 && this.#tryAcquireQueued()) this.#waiting.shift()?.();
  }
}
