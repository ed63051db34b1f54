import type { Logger } from "pino";
import type { Outbox, OutboxEvent } from "#storage/state-store.ts";
import type { Recipient, SerialisedEvent } from "./recipient.ts";

/** A store that hangs must not hold events back longer than this. */
const PATIENCE_MS = 1000;
/** Writes that may be under way at once; a store that hangs must not collect events without end. */
const MAX_WRITES = 1024;
/** One failing store fails for every event; one line a second says it. */
const LOG_EVERY_MS = 1000;

/** Whether an event is in the store; `undefined` while that is not known. */
export interface LoggedEvent {
  /** Resolves when the event is written, cannot be written, or has waited long enough. Never rejects. */
  readonly waited: Promise<void>;
  /** Resolves with whether the event is written; never rejects. */
  readonly isWritten: Promise<boolean>;
}

const NOT_LOGGED: LoggedEvent = { waited: Promise.resolve(), isWritten: Promise.resolve(false) };

/** Keeps events in the outbox until their recipients had them, as well as the store allows. */
export class EventLog {
  readonly #outbox: Outbox | undefined;
  readonly #log: Logger;
  readonly #now: () => number;
  #writesUnderWay = 0;
  #lastLogMs = Number.NEGATIVE_INFINITY;
  #unreported = 0;

  /** Without an outbox nothing is kept, and nothing waits. */
  constructor(outbox: Outbox | undefined, log: Logger, now: () => number) {
    this.#outbox = outbox;
    this.#log = log;
    this.#now = now;
  }

  /** Begins to write an event for its recipients; without recipients there is nothing to replay, so nothing to keep. */
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

  /** One recipient had its outcome. */
  async acknowledge(id: string, url: string, isWritten: Promise<boolean>): Promise<void> {
    const outbox = this.#outbox;
    if (outbox === undefined || !(await isWritten)) return;
    try {
      await outbox.acknowledge(id, url);
    } catch (error) {
      this.#report("event_wal_acknowledge_failed", error);
    }
  }

  /** Events that were not settled, oldest first; none when the store cannot say. */
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

/** A store that throws at once is as good as one that rejects. */
async function guarded(work: () => Promise<void>): Promise<void> {
  await work();
}
