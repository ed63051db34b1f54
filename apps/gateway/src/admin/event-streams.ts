import { Readable } from "node:stream";
import type { EventEnvelope } from "@headworks/gateway-contract";
import type { EventJournal } from "#events/event-journal.ts";

export interface StreamLimits {
  readonly heartbeatMs: number;
  /** Maximum number of concurrent streams. */
  readonly most: number;
  /** Maximum buffered characters for a slow client; more ends its stream. */
  readonly maxWaiting: number;
}

const LIMITS: StreamLimits = { heartbeatMs: 15_000, most: 32, maxWaiting: 1024 * 1024 };

/** Event streams as server-sent events. */
export class EventStreams {
  readonly #journal: EventJournal;
  readonly #limits: StreamLimits;
  /** With their unsubscribe functions. */
  readonly #open = new Map<Readable, () => void>();
  #isClosed = false;

  constructor(journal: EventJournal, limits: StreamLimits = LIMITS) {
    this.#journal = journal;
    this.#limits = limits;
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * Streams events from now on, preceded by retained events after `since`; undefined at the stream limit. Ends when
   * destroyed, when the client is too slow, with {@link cut} and {@link close}, and before the first event that the
   * client may no longer read.
   */
  open(since: string | undefined, mayRead: () => boolean): Readable | undefined {
    if (this.#isClosed || this.#open.size >= this.#limits.most) return undefined;
    const stream = new Readable({ highWaterMark: this.#limits.maxWaiting, encoding: "utf8", read: () => undefined });
    const push = (text: string): void => {
      stream.push(text);
      // A slow client can reconnect with its last event id.
      if (stream.readableLength > this.#limits.maxWaiting) stream.destroy();
    };
    push("retry: 2000\n\n");
    if (since !== undefined) {
      const page = this.#journal.since(since);
      if (!page.isComplete) push(": events between are no longer kept\n\n");
      for (const event of page.events) push(eventText(event));
    }
    const unsubscribe = this.#journal.subscribe((event) => {
      // Roles change only with publications, each of which is an event.
      if (mayRead()) push(eventText(event));
      else stream.destroy();
    });
    const heartbeat = setInterval(() => push(": here\n\n"), this.#limits.heartbeatMs);
    const letGo = (): void => {
      unsubscribe();
      clearInterval(heartbeat);
    };
    this.#open.set(stream, letGo);
    stream.once("close", () => {
      letGo();
      this.#open.delete(stream);
    });
    return stream;
  }

  /** Aborts all streams with their connections; new ones can be opened. */
  cut(): void {
    for (const stream of this.#open.keys()) stream.destroy();
  }

  /** Ends all streams gracefully; no new ones are opened. */
  close(): void {
    this.#isClosed = true;
    for (const [stream, letGo] of this.#open) {
      // Slow readers keep the stream open; no events may follow its end.
      letGo();
      stream.push(null);
    }
  }
}

function eventText(event: EventEnvelope): string {
  return `id: ${event.id}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;
}
