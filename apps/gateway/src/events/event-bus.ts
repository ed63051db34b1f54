import type { Logger } from "pino";
import { EVENT_KINDS, type EventEnvelope, type EventKind, type EventPayloads } from "@headworks/gateway-contract";
import type { Clock, EventSink } from "#slice.ts";
import type { Outbox, OutboxEvent } from "#storage/state-store.ts";
import { EventJournal } from "./event-journal.ts";
import { EventLog, type LoggedEvent } from "./event-log.ts";
import type { Recipient, RecipientList, SerialisedEvent } from "./recipient.ts";

/** Identifiers of one process's events: they sort as text in the order in which they were made. */
export class EventIds {
  readonly #prefix: string;
  #count = 0;

  /** `bootMs` is the wall clock at the start of the process, milliseconds since 1970. */
  constructor(bootMs: number) {
    this.#prefix = `evt-${bootHex(bootMs)}-`;
  }

  /** `evt-<boot ms, 11 hex digits until the year 2527>-<16 hex digits>`. */
  next(): string {
    const id = this.#prefix + this.#count.toString(16).padStart(16, "0");
    this.#count += 1;
    return id;
  }

  /** Whether an id was made by this process, rather than by one before it. */
  isOwn(id: string): boolean {
    return id.startsWith(this.#prefix);
  }
}

/** The boot time as ids and the envelope's `gateway` show it. */
const bootHex = (bootMs: number): string => Math.trunc(bootMs).toString(16).padStart(11, "0");

/** Events between their emission and their dispatch; one more is dropped. */
const QUEUE_CAPACITY = 256;
/** An event whose target is gone from the configuration is let go at this age: until then the target may come back. */
const ABANDONED_AFTER_MS = 24 * 3_600_000;
/** Above it an envelope is never sent (contract, webhooks). */
const MAX_ENVELOPE_BYTES = 16_384;

/** What the log says of them, too; configurations say more of themselves than their events do. */
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

export interface EventBusParts {
  readonly log: Logger;
  readonly clock: Clock;
  /** First word of the envelope's `gateway`. */
  readonly name?: string;
  readonly pid?: number;
  /** Keeps events over restarts; absent: they live as long as the process. */
  readonly outbox?: Outbox;
}

/** An event that waits for its dispatch. */
interface QueuedEvent {
  readonly event: SerialisedEvent;
  readonly createdMs: number;
  /** Who gets it, fixed at its emission; undefined before anybody is known. */
  readonly recipients: readonly Recipient[] | undefined;
  readonly logged: LoggedEvent | undefined;
}

/**
 * Where everything that happens to the gateway is told, and from where it goes to the recipients (specification,
 * Events). An emission makes the envelope, begins its write to the store, and returns; dispatch follows in later turns
 * of the event loop, in order, each event as soon as it is written.
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

  /** Events that were taken (`gateway_events_emitted_total`). */
  get emitted(): number {
    return this.#emitted;
  }

  /** Events refused at their emission: the queue was full, or the bus was stopped (`gateway_events_dropped_total`). */
  get dropped(): number {
    return this.#dropped;
  }

  /** Events of earlier processes that were handed to recipients again (`gateway_events_replayed_total`). */
  get replayed(): number {
    return this.#replayed;
  }

  /** Events that wait for their dispatch. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Another name for the envelopes from now on, when a new configuration gives one. */
  rename(name: string): void {
    this.#name = name;
  }

  /** Tells what happened. Never throws, never waits; without a free place in the queue the event is dropped. */
  emit<K extends EventKind>(kind: K, payload: EventPayloads[K]): void {
    try {
      this.#emit(kind, payload);
    } catch (error) {
      this.#dropped += 1;
      this.#log.error({ code: "event_failed", kind, err: error }, "an event could not be told");
    }
  }

  #emit<K extends EventKind>(kind: K, payload: EventPayloads[K]): void {
    this.#say(kind, payload);
    const createdMs = this.#clock.now();
    const envelope = this.#envelope(kind, payload, createdMs);
    const event = this.again(envelope);
    this.journal.add(envelope);
    const recipients = this.#list?.recipientsFor(kind);
    // Written before it is known whether the queue takes it: what is dropped here is replayed at the next start.
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
    // What is too large to be sent is never sent, so there is nothing to keep it for.
    return this.#store.append(event, createdMs, event.isTooLarge ? [] : recipients);
  }

  #say(kind: EventKind, payload: EventPayloads[EventKind]): void {
    const line = LOG_LINES[kind];
    if (line !== undefined) this.#log[line[0]]({ code: kind, ...payload }, line[1]);
  }

  /** An event that nobody emitted, with a new id and a made-up payload, to try a recipient with. */
  example(kind: EventKind): SerialisedEvent {
    return this.again(this.#envelope(kind, EXAMPLES[kind], this.#clock.now()));
  }

  /** An event of the journal, to send it once more. */
  again(envelope: EventEnvelope): SerialisedEvent {
    return serialised(envelope.id, envelope.kind, JSON.stringify(envelope));
  }

  #envelope<K extends EventKind>(kind: K, payload: EventPayloads[K], createdMs: number): EventEnvelope<K> {
    // The members in the order of the contract; it is the order in the JSON text.
    return {
      id: this.#ids.next(),
      kind,
      timestamp: new Date(createdMs).toISOString(),
      gateway: `${this.#name}-${this.#identity}`,
      payload: { ...payload },
    };
  }

  /**
   * Recipients are known from now on: events that waited for them go out, and those that earlier processes left in the
   * store are replayed beside new ones. Call it once, after the first generation was published.
   */
  start(list: RecipientList): void {
    if (this.#list !== undefined) throw new Error("The bus was started already");
    this.#list = list;
    this.#track(this.#replay(list));
    this.#drainSoon();
  }

  /**
   * Takes no more events, dispatches those that wait, and resolves when every delivery under way had its outcome; after
   * `graceMs` the rest is interrupted, to be replayed at the next start.
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
        this.#log.error({ code: "event_failed", err: error }, "an event could not be handed on");
      }
      // Only now does its place become free.
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
    // What was never tried stays in the store, for the next start.
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
    // One recipient that does not answer must not hold up the others.
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
        this.#log.error({ code: "event_failed", err: error }, "an event could not be handed on");
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

/** Who gets events of this kind at `url` now; undefined when nobody does any more. */
function recipientOf(list: RecipientList, kind: string, url: string): Recipient | undefined {
  return isKind(kind) ? list.recipientsFor(kind).find((each) => each.url === url) : undefined;
}

async function turnOfEventLoop(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  setImmediate(() => resolve(undefined));
  await promise;
}
