/**
 * A gateway reduced to its events: tells of one event after the other, without end, and prints the id of each once it
 * is in the store. Arguments: the store's file, the target's URL.
 */
import { writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { pino } from "pino";
import { EgressDialer } from "#egress/egress-dialer.ts";
import { EventBus } from "#events/event-bus.ts";
import { createWebhooks } from "#slices/webhooks/webhooks.slice.ts";
import { openStateStore } from "#storage/open-state-store.ts";
import type { Outbox } from "#storage/state-store.ts";
import { documentWith, publish, realClock } from "../egress/documents.ts";

const [path = "", url = ""] = process.argv.slice(2);
const log = pino({ level: "silent" });
const store = await openStateStore({ path, log, clock: realClock });
const outbox: Outbox = {
  pending: async () => await store.outbox.pending(),
  acknowledge: async (id, target) => await store.outbox.acknowledge(id, target),
  append: async (event) => {
    await store.outbox.append(event);
    // Not through a stream: what is printed must have left this process before anything else happens.
    writeSync(1, `stored ${event.id}\n`);
  },
};
const webhooks = createWebhooks({ dialer: new EgressDialer({ log }), clock: realClock, log });
const target = { url, events: ["breaker_half_open"], timeout_ms: 5000 };
publish(webhooks, documentWith({ webhooks: [target] }), log);
const bus = new EventBus({ log, clock: realClock, outbox });
bus.start(webhooks);
for (let count = 0; ; count += 1) {
  bus.emit("breaker_half_open", { upstream: `pool-${count}` });
  await delay(1);
}
