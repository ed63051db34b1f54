import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { spawnProcess, temporaryDirectory, waitUntil, type RawConnection } from "@headworks/testkit";
import { EventIds } from "#events/event-bus.ts";
import { openStateStore } from "#storage/open-state-store.ts";
import { realClock } from "../egress/documents.ts";
import { logLines } from "../egress/log-lines.ts";
import { MemoryOutbox } from "./memory-outbox.ts";
import { response, ok, startReceiver, type Receiver } from "./receiver.ts";
import { target, webhookRig } from "./webhook-rig.ts";

const PROGRAM = fileURLToPath(new URL("event-process.ts", import.meta.url));
const ROUNDS = 6;

const idsOf = (receiver: Receiver): string[] =>
  receiver.requests.map(({ body }) => /"id":"([^"]*)"/.exec(body)?.[1] ?? "no id");

const hang = async (connection: RawConnection): Promise<void> => void (await connection.closed);

test("delivery rules 1 and 7: what is in the store reaches its target although the process is killed at any moment", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  let respondsAtAll = true;
  // The target changes with chance: taken, dropped, not answered.
  await using receiver = await startReceiver(async (connection) => {
    const choice = respondsAtAll ? Math.random() : 1;
    if (choice < 0.4) await connection.write(ok);
    else if (choice < 0.7) connection.destroy();
    else await hang(connection);
  });
  const stored = new Set<string>();
  for (let round = 0; round < ROUNDS; round += 1) {
    respondsAtAll = round % 2 === 0;
    const before = stored.size;
    await using child = await spawnProcess(process.execPath, [PROGRAM, path, receiver.url]);
    // Another number of stored events before the end in every round.
    await waitUntil(() => (child.stdout().match(/^stored /gm)?.length ?? 0) > round * 25, { timeoutMs: 20_000 });
    process.kill(child.pid, "SIGKILL");
    await child.exited;
    // A line that was cut in its middle is of an event that is stored too, but its id cannot be read.
    for (const [, id = ""] of child.stdout().matchAll(/^stored (\S+)\n/gm)) stored.add(id);
    assert.ok(stored.size > before, "the ids of every process are new");
  }

  await using after = await startReceiver(ok);
  const logged = logLines();
  const store = await openStateStore({ path, log: logged.log, clock: realClock });
  const left = await store.outbox.pending();
  assert.ok(left.length > 0, "something was left to replay");
  const order = left.map(({ id }) => id);
  assert.deepEqual(order.toSorted(), order, "oldest first, over all processes");
  // The target is back at another address, and takes everything now.
  await receiver.close().catch(() => undefined);
  await using rig = webhookRig({ outbox: { ...store.outbox, pending: async () => redirected(left, after.url) } });
  rig.publish([target(after.url)]);
  rig.bus.start(rig.webhooks);
  await waitUntil(() => new Set(idsOf(after)).size === left.length, { timeoutMs: 20_000 });
  const taken = new Set([...idsOf(receiver), ...idsOf(after)]);
  const lost = [...stored].filter((id) => !taken.has(id));
  assert.deepEqual(lost, []);
  await rig.bus.stop();
  await store.close();
});

const redirected = <E extends { readonly targets: readonly string[] }>(events: readonly E[], url: string): E[] =>
  events.map((event) => ({ ...event, targets: [url] }));

test("delivery rule 7: what was delivered before the end is not sent again, what failed for good neither", async () => {
  const outbox = new MemoryOutbox();
  await using receiver = await startReceiver(ok, response(400), hang);
  {
    await using first = webhookRig({ outbox });
    first.publish([target(receiver.url, { timeout_ms: 60_000 })]);
    first.bus.start(first.webhooks);
    for (let count = 0; count < 3; count += 1) {
      first.bus.emit("breaker_half_open", { upstream: `pool-${count}` });
      await waitUntil(() => receiver.requests.length === count + 1);
    }
    await waitUntil(() => outbox.events.size === 1);
  }
  assert.equal(outbox.events.size, 1, "the delivery that was cut off is open");
  const [open] = outbox.events.keys();
  await using again = await startReceiver(ok);
  await using second = webhookRig({
    outbox: Object.assign(new MemoryOutbox(), {
      events: new Map(redirected([...outbox.events.values()], again.url).map((event) => [event.id, event])),
    }),
  });
  second.publish([target(again.url)]);
  second.bus.start(second.webhooks);
  await waitUntil(() => again.requests.length === 1);
  await second.bus.stop();
  assert.deepEqual(idsOf(again), [open]);
  assert.deepEqual(idsOf(receiver).slice(2), [open], "the same id as the first time, so that the target can tell");
});

test("delivery rule 7: a replay larger than the number of places is delivered whole, beside new events", async () => {
  const outbox = new MemoryOutbox();
  const ids = new EventIds(Date.UTC(2026, 0, 1));
  await using receiver = await startReceiver(ok);
  const left: string[] = [];
  for (let count = 0; count < 200; count += 1) {
    const id = ids.next();
    left.push(id);
    const envelope = JSON.stringify({ id });
    await outbox.append({ id, kind: "breaker_half_open", createdMs: 0, envelope, targets: [receiver.url] });
  }
  await using rig = webhookRig({ outbox });
  rig.publish([target(receiver.url)]);
  rig.bus.start(rig.webhooks);
  rig.bus.emit("breaker_half_open", { upstream: "new" });
  await waitUntil(() => outbox.events.size === 0, { timeoutMs: 20_000 });
  const seen = idsOf(receiver);
  assert.deepEqual(
    seen.filter((id) => left.includes(id)),
    left,
    "oldest first",
  );
  assert.equal(seen.length, 201);
  assert.deepEqual(rig.counts(), ["breaker_half_open delivered 201"]);
});
