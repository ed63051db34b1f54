import type { EventEnvelope } from "@headworks/gateway-contract";

/** Events after a known one. */
export interface JournalPage {
  /** Oldest first. */
  readonly events: readonly EventEnvelope[];
  /**
   * False if events between the known one and the first of these are missing: they were dropped, or may have occurred
   * in an earlier process.
   */
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
