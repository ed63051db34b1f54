import type { EventEnvelope, EventKind } from "@headworks/gateway-contract";
import type { EventBus } from "#events/event-bus.ts";
import type { SerialisedEvent } from "#events/recipient.ts";
import type { Webhooks } from "#slices/webhooks/webhooks.slice.ts";
import { AdminError } from "./admin-error.ts";
import type { AuditLog } from "./audit-log.ts";
import type { HandlerCall } from "./bind-operation.ts";
import type { EventStreams } from "./event-streams.ts";

export interface EventParts {
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
      const asked = to === undefined ? [...journal.between(from, "evt-g")] : [...journal.between(from, to)];
      if (asked.length === 0) throw new AdminError("not_found", "No event between these ids is kept");
      return {
        status: 200,
        body: await replay(asked, async (event) => await deliveryOf(webhooks, target, event), events),
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
  asked: readonly EventEnvelope[],
  deliver: (event: SerialisedEvent) => Promise<Delivery>,
  events: EventBus,
): Promise<{ deliveries: readonly Delivery[]; complete: boolean }> {
  const deliveries: Delivery[] = [];
  for (const envelope of asked.slice(0, MAX_REPLAYED)) {
    const delivery = await deliver(events.again(envelope));
    deliveries.push(delivery);
    if (delivery.outcome !== "delivered") return { deliveries, complete: false };
  }
  return { deliveries, complete: deliveries.length === asked.length };
}

/** A target URL without query and credentials, which may be secret. */
function shownUrl(text: string): string {
  const url = URL.parse(text);
  return url === null ? "a target" : url.origin + url.pathname;
}
