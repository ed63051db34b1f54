import type { Logger } from "pino";
import { EVENT_KINDS, type EventEnvelope, type EventKind, type EventPayloads } from "@headworks/gateway-contract";
import type { Clock, EventSink } from "#slice.ts";
import type { Outbox, OutboxEvent } from "#storage/state-store.ts";

/** A hung store must not delay events for longer than this. */
const PATIENCE_MS = 1000;

/** Limit of concurrent writes, for a store that hangs. */
const MAX_WRITES = 1024;

/** Minimum interval of log lines, since a failing store fails for every event. */
const LOG_EVERY_MS = 1000;
const NOT_LOGGED: LoggedEvent = { waited: Promise.resolve(), isWritten: Promise.resolve(false) };

/** Keeps events in the outbox until their recipients have them, as far as the store allows. */
class EventLog {
  readonly #outbox: Outbox | undefined;
  readonly #log: Logger;
  readonly #now: () => number;
  #writesUnderWay = 0;
  #lastLogMs = Number.NEGATIVE_INFINITY;
  #unreported = 0;

  /** Without an outbox nothing is kept or awaited. */
  constructor(outbox: Outbox | undefined, log: Logger, now: () => number) {
    this.#outbox = outbox;
    this.#log = log;
    this.#now = now;
  }

  /** Starts to write an event for its recipients; without recipients nothing is kept. */
  append(event: SerialisedEvent, createdMs: number, recipients: readonly Recipient[]): LoggedEvent {
    const outbox = this.#outbox;
    if (outbox === undefined || recipients.length === 0) return NOT_LOGGED;
    if (this.#writesUnderWay >= MAX_WRITES) {
      this.#report("event_wal_append_failed", new Error("Too many writes are under way"));
      return NOT_LOGGED;
    }
    const { id, kind, envelope } = event;
    const targets = recipients.map(({ url }) => url);
    this.#writesUnderWay += 1;
    const isWritten = guarded(() => outbox.append({ id, kind, createdMs, envelope: envelope.toString(), targets }))
      .then(
        () => true,
        (error: unknown) => {
          this.#report("event_wal_append_failed", error);
          return false;
        },
      )
      .finally(() => {
        this.#writesUnderWay -= 1;
      });
    return { waited: this.#atMost(isWritten), isWritten };
  }

  async #atMost(isWritten: Promise<boolean>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => {
      this.#report("event_wal_append_failed", new Error("The store does not respond; the event is sent all the same"));
      resolve(false);
    }, PATIENCE_MS);
    await Promise.race([isWritten, promise]);
    clearTimeout(timer);
  }

  /** One recipient has its outcome. */
  async acknowledge(id: string, url: string, isWritten: Promise<boolean>): Promise<void> {
    const outbox = this.#outbox;
    if (outbox === undefined || !(await isWritten)) return;
    try {
      await outbox.acknowledge(id, url);
    } catch (error) {
      this.#report("event_wal_acknowledge_failed", error);
    }
  }

  /** Unsettled events, oldest first; none if the store fails. */
  async pending(): Promise<readonly OutboxEvent[]> {
    const outbox = this.#outbox;
    if (outbox === undefined) return [];
    try {
      return await outbox.pending();
    } catch (error) {
      this.#report("event_wal_replay_failed", error);
      return [];
    }
  }

  #report(code: string, error: unknown): void {
    const now = this.#now();
    if (now - this.#lastLogMs < LOG_EVERY_MS) {
      this.#unreported += 1;
      return;
    }
    this.#lastLogMs = now;
    this.#log.error({ code, err: error, unreported: this.#unreported }, "the store does not take part in events");
    this.#unreported = 0;
  }
}

/** Ids of one process's events; their text order is the order of creation. */
export class EventIds {
  readonly #prefix: string;
  #count = 0;

  /** `bootMs`: wall clock at the start of the process, milliseconds since 1970. */
  constructor(bootMs: number) {
    this.#prefix = `evt-${bootHex(bootMs)}-`;
  }

  /** `evt-<boot ms, 11 hex digits until the year 2527>-<16 hex digits>`. */
  next(): string {
    const id = this.#prefix + this.#count.toString(16).padStart(16, "0");
    this.#count += 1;
    return id;
  }

  /** Whether this process created an id. */
  isOwn(id: string): boolean {
    return id.startsWith(this.#prefix);
  }
}

/** The boot time as in ids and the envelope's `gateway`. */
const bootHex = (bootMs: number): string => Math.trunc(bootMs).toString(16).padStart(11, "0");

/** Limit of events between emission and dispatch; further ones are dropped. */
const QUEUE_CAPACITY = 256;
/** Age at which an event for a removed target is dropped; until then the target may return. */
const ABANDONED_AFTER_MS = 24 * 3_600_000;
/** Larger envelopes are never sent (contract, webhooks). */
const MAX_ENVELOPE_BYTES = 16_384;

/** Events that are logged, too; configurations log more than their events contain. */
const LOG_LINES: Partial<Record<EventKind, readonly [level: "warn" | "info", message: string]>> = {
  breaker_opened: ["warn", "a circuit breaker opened: the upstream gets no requests"],
  breaker_half_open: ["info", "a circuit breaker is half open: the upstream is tried"],
  breaker_closed: ["info", "a circuit breaker closed: the upstream gets requests again"],
  endpoint_ejected: ["warn", "an endpoint was ejected: it gets no requests"],
  endpoint_recovered: ["info", "an endpoint recovered: it gets requests again"],
};

const EXAMPLES: EventPayloads = {
  breaker_opened: { upstream: "example", detail: "consecutive_failures" },
  breaker_half_open: { upstream: "example" },
  breaker_closed: { upstream: "example", detail: "half_open_probe_succeeded" },
  endpoint_ejected: { upstream: "example", endpoint: "192.0.2.1:80" },
  endpoint_recovered: { upstream: "example", endpoint: "192.0.2.1:80" },
  config_published: { generation: 0, content_hash: 0, route_count: 0 },
  config_rejected: { issue_count: 0, generation: 0 },
};

interface EventBusParts {
  readonly log: Logger;
  readonly clock: Clock;
  /** First word of the envelope's `gateway`. */
  readonly name?: string;
  readonly pid?: number;
  /** Keeps events over restarts; absent: they live as long as the process. */
  readonly outbox?: Outbox;
}

interface QueuedEvent {
  readonly event: SerialisedEvent;
  readonly createdMs: number;
  /** Fixed at emission; undefined before recipients are known. */
  readonly recipients: readonly Recipient[] | undefined;
  readonly logged: LoggedEvent | undefined;
}

/**
 * Distributes events of the gateway to recipients (specification, Events). An emission creates the envelope, starts
 * its write to the store, and returns; dispatch follows in later turns of the event loop, in order, each event as
 * soon as it is written.
 */
export class EventBus implements EventSink {
  readonly journal = new EventJournal();
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #ids: EventIds;
  readonly #store: EventLog;
  readonly #identity: string;
  readonly #queue: QueuedEvent[] = [];
  readonly #underWay = new Set<Promise<void>>();
  #name: string;
  #list: RecipientList | undefined;
  #isStopped = false;
  #isDraining = false;
  #emitted = 0;
  #dropped = 0;
  #replayed = 0;

  constructor(parts: EventBusParts) {
    const bootMs = parts.clock.now();
    this.#log = parts.log;
    this.#clock = parts.clock;
    this.#ids = new EventIds(bootMs);
    this.#store = new EventLog(parts.outbox, parts.log, () => parts.clock.monotonic());
    this.#name = parts.name ?? "gateway";
    this.#identity = `${parts.pid ?? process.pid}-${bootHex(bootMs)}`;
  }

  /** Accepted events (`gateway_events_emitted_total`). */
  get emitted(): number {
    return this.#emitted;
  }

  /** Events refused at emission: the queue was full, or the bus was stopped (`gateway_events_dropped_total`). */
  get dropped(): number {
    return this.#dropped;
  }

  /** Events of earlier processes that were sent to recipients again (`gateway_events_replayed_total`). */
  get replayed(): number {
    return this.#replayed;
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** Changes the name in later envelopes. */
  rename(name: string): void {
    this.#name = name;
  }

  /** Emits an event. Never throws or blocks; if the queue is full, the event is dropped. */
  emit<K extends EventKind>(kind: K, payload: EventPayloads[K]): void {
    try {
      this.#emit(kind, payload);
    } catch (error) {
      this.#dropped += 1;
      this.#log.error({ code: "event_failed", kind, err: error }, "An event could not be emitted");
    }
  }

  #emit<K extends EventKind>(kind: K, payload: EventPayloads[K]): void {
    this.#say(kind, payload);
    const createdMs = this.#clock.now();
    const envelope = this.#envelope(kind, payload, createdMs);
    const event = this.again(envelope);
    this.journal.add(envelope);
    const recipients = this.#list?.recipientsFor(kind);
    // Written before the queue accepts it: an event dropped here is replayed at the next start.
    const logged = recipients === undefined ? undefined : this.#append(event, createdMs, recipients);
    if (this.#isStopped || this.#queue.length >= QUEUE_CAPACITY) {
      this.#dropped += 1;
      return;
    }
    this.#emitted += 1;
    this.#queue.push({ event, createdMs, recipients, logged });
    this.#drainSoon();
  }

  #append(event: SerialisedEvent, createdMs: number, recipients: readonly Recipient[]): LoggedEvent {
    // An event that is too large is never sent, so it need not be kept.
    return this.#store.append(event, createdMs, event.isTooLarge ? [] : recipients);
  }

  #say(kind: EventKind, payload: EventPayloads[EventKind]): void {
    const line = LOG_LINES[kind];
    if (line !== undefined) this.#log[line[0]]({ code: kind, ...payload }, line[1]);
  }

  /** An event with a new id and an example payload, to test a recipient; it is not emitted. */
  example(kind: EventKind): SerialisedEvent {
    return this.again(this.#envelope(kind, EXAMPLES[kind], this.#clock.now()));
  }

  /** An event of the journal, to be sent again. */
  again(envelope: EventEnvelope): SerialisedEvent {
    return serialised(envelope.id, envelope.kind, JSON.stringify(envelope));
  }

  #envelope<K extends EventKind>(kind: K, payload: EventPayloads[K], createdMs: number): EventEnvelope<K> {
    // Members in the order of the contract, which is the order in the JSON text.
    return {
      id: this.#ids.next(),
      kind,
      timestamp: new Date(createdMs).toISOString(),
      gateway: `${this.#name}-${this.#identity}`,
      payload: { ...payload },
    };
  }

  /**
   * Sets the recipients: queued events are sent, and pending ones of earlier processes are replayed beside new ones.
   * Call it once, after the first generation was published.
   */
  start(list: RecipientList): void {
    if (this.#list !== undefined) throw new Error("The bus was started already");
    this.#list = list;
    this.#track(this.#replay(list));
    this.#drainSoon();
  }

  /**
   * Accepts no more events, dispatches the queued ones, and resolves when every active delivery has its outcome;
   * after `graceMs` the rest is interrupted, to be replayed at the next start.
   */
  async stop(graceMs = 2000): Promise<void> {
    this.#isStopped = true;
    const list = this.#list;
    if (list === undefined) {
      this.#dropped += this.#queue.length;
      this.#queue.length = 0;
      return;
    }
    const timer = setTimeout(() => list.interrupt(), graceMs);
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    clearTimeout(timer);
  }

  #drainSoon(): void {
    if (this.#isDraining || this.#list === undefined) return;
    this.#isDraining = true;
    this.#track(this.#drain(this.#list));
  }

  async #drain(list: RecipientList): Promise<void> {
    await turnOfEventLoop();
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      try {
        await this.#dispatch(next, list);
      } catch (error) {
        this.#log.error({ code: "event_failed", err: error }, "An event could not be dispatched");
      }
      // Its slot in the queue is free only now.
      this.#queue.shift();
    }
    this.#isDraining = false;
  }

  async #dispatch(next: QueuedEvent, list: RecipientList): Promise<void> {
    const recipients = next.recipients ?? list.recipientsFor(next.event.kind);
    const logged = next.logged ?? this.#append(next.event, next.createdMs, recipients);
    await logged.waited;
    for (const recipient of recipients) this.#track(this.#hand(next.event, recipient, "drop", logged.isWritten));
  }

  async #hand(
    event: SerialisedEvent,
    recipient: Recipient,
    whenBusy: "drop" | "wait",
    isWritten: Promise<boolean>,
  ): Promise<void> {
    const outcome = await recipient.deliver(event, whenBusy);
    // Events that were never tried stay in the store for the next start.
    const isSettled = outcome === "delivered" || outcome === "failed";
    if (isSettled) await this.#store.acknowledge(event.id, recipient.url, isWritten);
  }

  async #replay(list: RecipientList): Promise<void> {
    const left = (await this.#store.pending()).filter(({ id }) => !this.#ids.isOwn(id));
    this.#replayed = left.filter(({ kind, targets }) =>
      targets.some((url) => recipientOf(list, kind, url) !== undefined),
    ).length;
    const byUrl = new Map<string, OutboxEvent[]>();
    for (const event of left) {
      for (const url of event.targets) {
        const events = byUrl.get(url);
        if (events === undefined) byUrl.set(url, [event]);
        else events.push(event);
      }
    }
    // An unresponsive recipient must not delay the others.
    await Promise.all(Array.from(byUrl, ([url, events]) => this.#replayTo(url, events, list)));
  }

  async #replayTo(url: string, events: readonly OutboxEvent[], list: RecipientList): Promise<void> {
    const written = Promise.resolve(true);
    for (const { id, kind, envelope, createdMs } of events) {
      if (this.#isStopped) return;
      const recipient = recipientOf(list, kind, url);
      if (recipient !== undefined && isKind(kind)) {
        await this.#hand(serialised(id, kind, envelope), recipient, "wait", written);
      } else if (this.#clock.now() - createdMs > ABANDONED_AFTER_MS) {
        await this.#store.acknowledge(id, url, written);
      }
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => {
        this.#log.error({ code: "event_failed", err: error }, "An event could not be dispatched");
      })
      .finally(() => this.#underWay.delete(tracked));
    this.#underWay.add(tracked);
  }
}

function serialised(id: string, kind: EventKind, text: string): SerialisedEvent {
  const envelope = Buffer.from(text);
  return { id, kind, envelope, isTooLarge: envelope.length > MAX_ENVELOPE_BYTES };
}

const isKind = (kind: string): kind is EventKind => EVENT_KINDS.some((known) => known === kind);

/** The current recipient of events of this kind at `url`; undefined if there is none any more. */
function recipientOf(list: RecipientList, kind: string, url: string): Recipient | undefined {
  return isKind(kind) ? list.recipientsFor(kind).find((each) => each.url === url) : undefined;
}

async function turnOfEventLoop(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  setImmediate(() => resolve(undefined));
  await promise;
}

interface LoggedEvent {
  /** Resolves when the event is written, the write failed, or the wait timed out. Never rejects. */
  readonly waited: Promise<void>;
  /** Resolves with whether the event is written; never rejects. */
  readonly isWritten: Promise<boolean>;
}

/** Turns a synchronous exception into a rejection. */
async function guarded(work: () => Promise<void>): Promise<void> {
  await work();
}

/** An event with its envelope serialised once. */
export interface SerialisedEvent {
  readonly id: string;
  readonly kind: EventKind;
  /** The envelope as JSON in UTF-8. */
  readonly envelope: Buffer;
  /** Above the size limit: it is never sent. */
  readonly isTooLarge: boolean;
}

/**
 * Outcome of an event at one recipient. `dropped`: not tried, since too many deliveries are active or the envelope is
 * too large. `interrupted`: the gateway stops.
 */
export type DeliveryOutcome = "delivered" | "failed" | "dropped" | "interrupted";

export interface Recipient {
  /** Identifies the recipient across generations and restarts. */
  readonly url: string;
  /** Never rejects. `wait`: queue the event instead of dropping it when too many deliveries are active. */
  deliver(event: SerialisedEvent, whenBusy: "drop" | "wait"): Promise<DeliveryOutcome>;
}

/** The recipients of the running generation. */
export interface RecipientList {
  recipientsFor(kind: EventKind): readonly Recipient[];
  /** The gateway stops: active deliveries end as `interrupted` at once. */
  interrupt(): void;
}

/** Events after a known one. */
interface JournalPage {
  /** Oldest first. */
  readonly events: readonly EventEnvelope[];
  /** False if events between the known one and the first of these are missing. */
  readonly isComplete: boolean;
}

/** The latest events of this process, for the admin API, including those that recipients never got. */
export class EventJournal {
  readonly #capacity: number;
  readonly #events: EventEnvelope[] = [];
  readonly #listeners = new Set<(event: EventEnvelope) => void>();
  #hasForgotten = false;

  constructor(capacity = 1000) {
    this.#capacity = capacity;
  }

  /** Adds an event and notifies listeners; a listener that throws is removed. */
  add(event: EventEnvelope): void {
    this.#events.push(event);
    if (this.#events.length > this.#capacity) {
      this.#events.shift();
      this.#hasForgotten = true;
    }
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch {
        this.#listeners.delete(listener);
      }
    }
  }

  /** The latest events, at most `limit`, newest first. */
  latest(limit: number): readonly EventEnvelope[] {
    return limit <= 0 ? [] : this.#events.slice(-limit).toReversed();
  }

  /** Events with an id above `id`, which may be of an earlier process. */
  since(id: string): JournalPage {
    const start = this.#events.findIndex((event) => event.id > id);
    const events = start === -1 ? [] : this.#events.slice(start);
    const [oldest] = this.#events;
    const isOwn = oldest === undefined || bootOf(id) === bootOf(oldest.id);
    return { events, isComplete: isOwn && (start !== 0 || !this.#hasForgotten) };
  }

  /** Events with ids from `from` to `to`, both included, oldest first. */
  between(from: string, to: string): readonly EventEnvelope[] {
    return this.#events.filter((event) => event.id >= from && event.id <= to);
  }

  /** Calls `listener` synchronously with every later event; returns a function that unsubscribes. */
  subscribe(listener: (event: EventEnvelope) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }
}

/** The common part of the ids of a process. */
function bootOf(id: string): string {
  return id.slice(0, Math.max(0, id.lastIndexOf("-")));
}
