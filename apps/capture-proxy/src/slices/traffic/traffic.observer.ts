import type { ExchangeView } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import type { SliceHost } from "#slice.ts";

/** An exchange that is over sooner is recorded and shown once, with its end. */
const SHOW_AFTER_MS = 100;
const SWEEP_MS = 50;
const COUNT_EVERY_MS = 1000;

interface Running {
  seq: number;
  readonly startedMs: number;
  /** Undefined once it is over or recorded. */
  exchange: ExchangeView | undefined;
}

/**
 * Records exchanges and tells listeners of them. Short ones are told once, when they end; those that take longer are
 * recorded and told while they run, again when their answer begins, and at their end. One sweep for all replaces a timer
 * for each.
 */
export class TrafficObserver implements Observer {
  readonly name = "traffic";
  readonly #host: Pick<SliceHost, "clock" | "events" | "store">;
  /**
   * Not recorded yet, by id, in the order of their start. A map that grows or is tidied leaves its former table behind with
   * a link to the next one, so that the collector of young objects keeps every table and whatever was in it: with exchanges
   * as keys that was half of all exchanges, and a fifth of the proxy's time.
   */
  readonly #fresh = new Map<string, Running>();
  /** Recorded as running. */
  readonly #shown = new Map<ExchangeView, number>();
  /** To be recorded as soon as they are told of. */
  readonly #awaited = new Set<ExchangeView>();
  /** Removed by somebody while they ran: their end is not recorded. */
  readonly #dropped = new WeakSet<ExchangeView>();
  #toldCount = -1;
  #countToldMs = 0;

  constructor(host: Pick<SliceHost, "clock" | "events" | "store">) {
    this.#host = host;
  }

  onStarted(exchange: ExchangeView): void {
    if (!exchange.isRecorded) return;
    const seq = this.#host.store.nextSeq();
    if (this.#awaited.size > 0 && this.#awaited.delete(exchange)) return this.#show(exchange, seq);
    this.#fresh.set(exchange.id, { seq, startedMs: this.#host.clock.monotonic(), exchange });
  }

  /** Records an exchange that has something which must not be there without its entry, such as frames. */
  show(exchange: ExchangeView): void {
    const fresh = this.#takeFresh(exchange);
    if (fresh !== undefined) this.#show(exchange, fresh.seq);
    else if (!this.#shown.has(exchange)) this.#awaited.add(exchange);
  }

  /** What is shown as waiting has its answer now, and may stay open for hours. */
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
    // What failed before its head was known was never announced.
    const seq = fresh?.seq ?? shown ?? store.nextSeq();
    store.record(seq, exchange);
    if (!events.hasListeners) return;
    events.traffic({ type: shown === undefined ? "Added" : "Updated", data: store.snapshotOf(seq, exchange) });
  }

  /** Sweeps until the signal aborts. */
  start(signal: AbortSignal): void {
    const stop = this.#host.clock.every(SWEEP_MS, () => this.#sweep());
    signal.addEventListener("abort", stop, { once: true });
  }

  /** Entries were removed by their ids. */
  forget(ids: readonly string[]): void {
    if (this.#shown.size === 0) return;
    const removed = new Set(ids);
    for (const exchange of this.#shown.keys()) if (removed.has(exchange.id)) this.#drop(exchange);
  }

  /**
   * A session is being cleared: what is shown of its running exchanges goes with it. Those that are not shown yet come
   * after the clearing and get numbers that say so.
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
      // The map is in the order of starts: all that follow are younger.
      if (nowMs - startedMs < SHOW_AFTER_MS) break;
      if (exchange === undefined) continue;
      this.#takeFresh(exchange);
      this.#show(exchange, seq);
    }
    this.#tellCount(nowMs);
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

  #tellCount(nowMs: number): void {
    if (nowMs - this.#countToldMs < COUNT_EVERY_MS || !this.#host.events.hasListeners) return;
    this.#countToldMs = nowMs;
    const { entryCount } = this.#host.store.status();
    if (entryCount === this.#toldCount) return;
    this.#toldCount = entryCount;
    this.#host.events.traffic({ type: "CountUpdate", data: entryCount });
  }
}
