import type { ExchangeView } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import type { SliceHost } from "#slice.ts";

/** An exchange that ends sooner is recorded and shown once, at its end. */
const SHOW_AFTER_MS = 100;
const SWEEP_MS = 50;
const COUNT_EVERY_MS = 1000;

interface Running {
  seq: number;
  readonly startedMs: number;
  /** Undefined once ended or recorded. */
  exchange: ExchangeView | undefined;
}

/**
 * Records exchanges and notifies listeners. Short exchanges are reported once, at their end; longer ones while they
 * run, when their response begins, and at their end. A single sweep replaces a timer per exchange.
 */
export class TrafficObserver implements Observer {
  readonly name = "traffic";
  readonly #host: Pick<SliceHost, "clock" | "events" | "store">;
  /**
   * Exchanges not recorded yet, by id, in order of their start. A map that grows or is rehashed leaves its old table
   * behind with a link to the new one, so the young-generation collector keeps every table and its contents: with
   * exchanges as keys that was half of all exchanges and a fifth of the proxy's time.
   */
  readonly #fresh = new Map<string, Running>();
  readonly #shown = new Map<ExchangeView, number>();
  /** Recorded as soon as they start. */
  readonly #awaited = new Set<ExchangeView>();
  /** Removed while they ran: their end is not recorded. */
  readonly #dropped = new WeakSet<ExchangeView>();
  #reportedCount = -1;
  #countReportedMs = 0;

  constructor(host: Pick<SliceHost, "clock" | "events" | "store">) {
    this.#host = host;
  }

  onStarted(exchange: ExchangeView): void {
    if (!exchange.isRecorded) return;
    const seq = this.#host.store.nextSeq();
    if (this.#awaited.size > 0 && this.#awaited.delete(exchange)) return this.#show(exchange, seq);
    this.#fresh.set(exchange.id, { seq, startedMs: this.#host.clock.monotonic(), exchange });
  }

  /** Records an exchange now because dependent rows, such as frames, need its entry. */
  show(exchange: ExchangeView): void {
    const fresh = this.#takeFresh(exchange);
    if (fresh !== undefined) this.#show(exchange, fresh.seq);
    else if (!this.#shown.has(exchange)) this.#awaited.add(exchange);
  }

  /** The response may stay open for hours, so a shown exchange is updated when it begins. */
  onResponding(exchange: ExchangeView): void {
    const seq = this.#shown.size === 0 ? undefined : this.#shown.get(exchange);
    if (seq === undefined) return;
    const { store, events } = this.#host;
    store.record(seq, exchange);
    if (events.hasListeners) events.traffic({ type: "Updated", data: store.snapshotOf(seq, exchange) });
  }

  onFinished(exchange: ExchangeView): void {
    if (!exchange.isRecorded) return;
    const { store, events } = this.#host;
    if (this.#dropped.delete(exchange)) {
      exchange.requestBody.discard();
      exchange.responseBody.discard();
      return;
    }
    const fresh = this.#takeFresh(exchange);
    const shown = fresh === undefined ? this.#shown.get(exchange) : undefined;
    if (fresh === undefined) {
      this.#awaited.delete(exchange);
      this.#shown.delete(exchange);
    }
    // Exchanges that failed before their head was known were never announced.
    const seq = fresh?.seq ?? shown ?? store.nextSeq();
    store.record(seq, exchange);
    if (!events.hasListeners) return;
    events.traffic({ type: shown === undefined ? "Added" : "Updated", data: store.snapshotOf(seq, exchange) });
  }

  start(signal: AbortSignal): void {
    const stop = this.#host.clock.every(SWEEP_MS, () => this.#sweep());
    signal.addEventListener("abort", stop, { once: true });
  }

  forget(ids: readonly string[]): void {
    if (this.#shown.size === 0) return;
    const removed = new Set(ids);
    for (const exchange of this.#shown.keys()) if (removed.has(exchange.id)) this.#drop(exchange);
  }

  /**
   * Handles the clearing of a session: shown running exchanges are dropped with it. Those not shown yet get new
   * sequence numbers, after the clearing.
   */
  forgetAll(sessionId: string): void {
    const { store } = this.#host;
    for (const exchange of this.#shown.keys()) if (store.sessionIdOf(exchange) === sessionId) this.#drop(exchange);
    for (const running of this.#fresh.values()) running.seq = store.nextSeq();
  }

  #drop(exchange: ExchangeView): void {
    this.#shown.delete(exchange);
    this.#dropped.add(exchange);
  }

  #sweep(): void {
    const { clock } = this.#host;
    const nowMs = clock.monotonic();
    for (const { exchange, seq, startedMs } of this.#fresh.values()) {
      // Ordered by start: all further ones are younger.
      if (nowMs - startedMs < SHOW_AFTER_MS) break;
      if (exchange === undefined) continue;
      this.#takeFresh(exchange);
      this.#show(exchange, seq);
    }
    this.#reportCount(nowMs);
  }

  #takeFresh({ id }: ExchangeView): Running | undefined {
    const running = this.#fresh.get(id);
    if (running === undefined) return undefined;
    running.exchange = undefined;
    this.#fresh.delete(id);
    return running;
  }

  #show(exchange: ExchangeView, seq: number): void {
    const { store, events } = this.#host;
    this.#shown.set(exchange, seq);
    store.record(seq, exchange);
    if (events.hasListeners) events.traffic({ type: "Added", data: store.snapshotOf(seq, exchange) });
  }

  #reportCount(nowMs: number): void {
    if (nowMs - this.#countReportedMs < COUNT_EVERY_MS || !this.#host.events.hasListeners) return;
    this.#countReportedMs = nowMs;
    const { entryCount } = this.#host.store.status();
    if (entryCount === this.#reportedCount) return;
    this.#reportedCount = entryCount;
    this.#host.events.traffic({ type: "CountUpdate", data: entryCount });
  }
}
