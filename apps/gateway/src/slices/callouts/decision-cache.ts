/** Remembers whether something was allowed for a while; the longest unused decision gives way to a new one. */
export class DecisionCache {
  readonly #ttlMs: number;
  readonly #capacity: number;
  readonly #decisions = new Map<string, { readonly isAllowed: boolean; readonly untilMs: number }>();

  /** `ttlMs` 0 remembers nothing. */
  constructor(ttlMs: number, capacity = 10_000) {
    this.#ttlMs = ttlMs;
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#decisions.size;
  }

  /** The decision, if it is still good at `nowMs`. */
  get(key: string, nowMs: number): boolean | undefined {
    const found = this.#decisions.get(key);
    if (found === undefined) return undefined;
    this.#decisions.delete(key);
    if (nowMs >= found.untilMs) return undefined;
    this.#decisions.set(key, found);
    return found.isAllowed;
  }

  /** Good from `nowMs` on for the time of the cache. */
  set(key: string, isAllowed: boolean, nowMs: number): void {
    if (this.#ttlMs === 0) return;
    this.#decisions.delete(key);
    const [oldest] = this.#decisions.keys();
    if (this.#decisions.size >= this.#capacity && oldest !== undefined) this.#decisions.delete(oldest);
    this.#decisions.set(key, { isAllowed, untilMs: nowMs + this.#ttlMs });
  }
}
