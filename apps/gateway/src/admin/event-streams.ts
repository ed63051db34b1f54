import { Readable } from "node:stream";
import type { EventEnvelope } from "@headworks/gateway-contract";
import type { EventJournal } from "#events/event-journal.ts";

/** Times and bounds of streams. */
export interface StreamLimits {
  readonly heartbeatMs: number;
  /** Streams at a time. */
  readonly most: number;
  /** What waits for a client that does not read, in characters; more ends its stream. */
  readonly maxWaiting: number;
}

const LIMITS: StreamLimits = { heartbeatMs: 15_000, most: 32, maxWaiting: 1024 * 1024 };

/** Open streams of events as text of server-sent events. */
export class EventStreams {
  readonly #journal: EventJournal;
  readonly #limits: StreamLimits;
  /** With what lets go of the journal and the clock. */
  readonly #open = new Map<Readable, () => void>();
  #isClosed = false;

  constructor(journal: EventJournal, limits: StreamLimits = LIMITS) {
    this.#journal = journal;
    this.#limits = limits;
  }

  /** Streams that are open. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Events from now on, behind those after `since` that are kept; undefined when there are too many streams. The stream
   * ends when it is destroyed, when nobody reads it for too long, with {@link cut} and {@link close}, and in place of the
   * first event that its reader may not read.
   */
  open(since: string | undefined, mayRead: () => boolean): Readable | undefined {
    if (this.#isClosed || this.#open.size >= this.#limits.most) return undefined;
    const stream = new Readable({ highWaterMark: this.#limits.maxWaiting, encoding: "utf8", read: () => undefined });
    const push = (text: string): void => {
      stream.push(text);
      // A client that does not read gets its connection back to come again with the id it has.
      if (stream.readableLength > this.#limits.maxWaiting) stream.destroy();
    };
    push("retry: 2000\n\n");
    if (since !== undefined) {
      const page = this.#journal.since(since);
      if (!page.isComplete) push(": events between are no longer kept\n\n");
      for (const event of page.events) push(eventText(event));
    }
    const unsubscribe = this.#journal.subscribe((event) => {
      // What takes a role away is a publication, and each of those is an event.
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

  /** Ends every stream at once, with its connection and what waits in it; others are opened as before. */
  cut(): void {
    for (const stream of this.#open.keys()) stream.destroy();
  }

  /** Ends every stream in good order; none is opened any more. */
  close(): void {
    this.#isClosed = true;
    for (const [stream, letGo] of this.#open) {
      // Whoever reads slowly keeps it open for a while, and nothing may come behind its end.
      letGo();
      stream.push(null);
    }
  }
}

function eventText(event: EventEnvelope): string {
  return `id: ${event.id}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;
}
