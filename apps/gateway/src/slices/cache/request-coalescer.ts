import type { Timer } from "#egress/timer.ts";
import type { RequestContext } from "#request/context.ts";

interface CoalescedRequest {
  readonly leader: RequestContext;
  readonly onEnd: Set<() => void>;
}

/** Cacheable requests in flight by key, on which equal requests wait. */
export class RequestCoalescer {
  readonly #byKey = new Map<string, CoalescedRequest>();
  readonly #timer: Timer;

  constructor(timer: Timer) {
    this.#timer = timer;
  }

  get size(): number {
    return this.#byKey.size;
  }

  has(key: string): boolean {
    return this.#byKey.has(key);
  }

  begin(key: string, leader: RequestContext): void {
    if (!this.#byKey.has(key)) this.#byKey.set(key, { leader, onEnd: new Set() });
  }

  /** The request got a response or failed; no effect unless others wait for it. */
  end(key: string, request: RequestContext): void {
    const coalesced = this.#byKey.get(key);
    if (coalesced?.leader !== (request.refreshes ?? request)) return;
    this.#byKey.delete(key);
    for (const land of coalesced.onEnd) land();
  }

  /** Resolves when the request in flight ends, or after `maxMs`. */
  async wait(key: string, maxMs: number): Promise<void> {
    const coalesced = this.#byKey.get(key);
    if (coalesced === undefined) return;
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const land = (): void => resolve(undefined);
    const cancel = this.#timer(maxMs, land);
    coalesced.onEnd.add(land);
    await promise;
    cancel();
    coalesced.onEnd.delete(land);
  }
}
