import { Readable } from "node:stream";
import type { EventEnvelope, EventKind } from "@headworks/gateway-contract";
import type { EventBus, EventJournal, SerialisedEvent } from "#events/event-bus.ts";
import type { Webhooks } from "#slices/webhooks/webhooks.slice.ts";
import type { AuditLog } from "./audit-log.ts";
import { AdminError, type HandlerCall } from "./bind-operation.ts";

interface EventParts {
  readonly events: EventBus;
  readonly webhooks: Webhooks;
  readonly streams: EventStreams;
  readonly audit: AuditLog;
}

const DEFAULT_LIMIT = 100;
const MAX_REPLAYED = 100;

/** Handlers of `/events`, `/webhooks` and `/audit`. */
export function eventOperations({ events, webhooks, streams, audit }: EventParts) {
  const { journal } = events;
  return {
    listWebhooks: () => ({ status: 200, body: { webhooks: webhooks.targets(), active: webhooks.active } }),
    testWebhook: async ({ body, note }: HandlerCall) => {
      const { url, kind = "config_published" } = body as { url: string; kind?: EventKind };
      note(shownUrl(url));
      return { status: 200, body: await deliveryOf(webhooks, url, events.example(kind)) };
    },
    listEvents: ({ query }: HandlerCall) => {
      const { since, limit = DEFAULT_LIMIT } = query as { since?: string; limit?: number };
      if (since === undefined) return { status: 200, body: { events: journal.latest(limit), complete: true } };
      const page = journal.since(since);
      const isComplete = page.isComplete && page.events.length <= limit;
      return { status: 200, body: { events: page.events.slice(0, limit), complete: isComplete } };
    },
    streamEvents: ({ query, headers, isStillAllowed }: HandlerCall) => {
      const { since = headers["last-event-id"] } = query as { since?: string };
      const stream = streams.open(typeof since === "string" && since !== "" ? since : undefined, isStillAllowed);
      if (stream === undefined) throw new AdminError("too_many_streams");
      return { status: 200, headers: { "x-accel-buffering": "no" }, body: stream };
    },
    replayEvents: async ({ body, note }: HandlerCall) => {
      const { from, to, target } = body as { from: string; to?: string; target: string };
      note(`${shownUrl(target)} ${from} to ${to ?? "the latest"}`);
      const requested = to === undefined ? [...journal.between(from, "evt-g")] : [...journal.between(from, to)];
      if (requested.length === 0) throw new AdminError("not_found", "No event between these ids is kept");
      return {
        status: 200,
        body: await replay(requested, async (event) => await deliveryOf(webhooks, target, event), events),
      };
    },
    listAudit: ({ query }: HandlerCall) => {
      const { limit = DEFAULT_LIMIT } = query as { limit?: number };
      return { status: 200, body: { entries: audit.latest(limit) } };
    },
  };
}

interface Delivery {
  readonly id: string;
  readonly kind: EventKind;
  readonly outcome: "delivered" | "failed" | "interrupted";
  readonly attempts: number;
  readonly status: number | null;
  readonly reason: string;
}

async function deliveryOf(webhooks: Webhooks, url: string, event: SerialisedEvent): Promise<Delivery> {
  const report = await webhooks.send(url, event);
  if (report === undefined) {
    throw new AdminError("not_found", "There is no such webhook target, or several of that name");
  }
  const { outcome, attempts, status, reason } = report;
  return { id: event.id, kind: event.kind, outcome, attempts, status: status ?? null, reason };
}

/** In order, so that a rejected event is the last one tried. */
async function replay(
  requested: readonly EventEnvelope[],
  deliver: (event: SerialisedEvent) => Promise<Delivery>,
  events: EventBus,
): Promise<{ deliveries: readonly Delivery[]; complete: boolean }> {
  const deliveries: Delivery[] = [];
  for (const envelope of requested.slice(0, MAX_REPLAYED)) {
    const delivery = await deliver(events.again(envelope));
    deliveries.push(delivery);
    if (delivery.outcome !== "delivered") return { deliveries, complete: false };
  }
  return { deliveries, complete: deliveries.length === requested.length };
}

/** A target URL without query and credentials, which may be secret. */
function shownUrl(text: string): string {
  const url = URL.parse(text);
  return url === null ? "a target" : url.origin + url.pathname;
}

interface StreamLimits {
  readonly heartbeatMs: number;
  /** Maximum number of concurrent streams. */
  readonly max: number;
  /** Maximum buffered characters for a slow client; more ends its stream. */
  readonly maxWaiting: number;
}

const LIMITS: StreamLimits = { heartbeatMs: 15_000, max: 32, maxWaiting: 1024 * 1024 };

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
    if (this.#isClosed || this.#open.size >= this.#limits.max) return undefined;
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
