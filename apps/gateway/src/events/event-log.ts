import type { Logger } from "pino";
import type { Outbox, OutboxEvent } from "#storage/state-store.ts";
import type { Recipient, SerialisedEvent } from "./recipient.ts";

/** A hung store must not delay events for longer than this. */
const PATIENCE_MS = 1000;
/** Limit of concurrent writes, for a store that hangs. */
const MAX_WRITES = 1024;
/** Minimum interval of log lines, since a failing store fails for every event. */
const LOG_EVERY_MS = 1000;

/** The write of one event. */
export interface LoggedEvent {
  /** Resolves when the event is written, the write failed, or the wait timed out. Never rejects. */
  readonly waited: Promise<void>;
  /** Resolves with whether the event is written; never rejects. */
  readonly isWritten: Promise<boolean>;
}

const NOT_LOGGED: LoggedEvent = { waited: Promise.resolve(), isWritten: Promise.resolve(false) };

/** Keeps events in the outbox until their recipients have them, as far as the store allows. */
export class EventLog {
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
      this.#report("event_wal_append_failed", new Error("The store does not answer; the event is sent all the same"));
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

/** Turns a synchronous exception into a rejection. */
async function guarded(work: () => Promise<void>): Promise<void> {
  await work();
}
