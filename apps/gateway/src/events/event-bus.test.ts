import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EVENT_KINDS } from "@headworks/gateway-contract";
import { FakeClock, waitUntil } from "@headworks/testkit";
import { logLines, type LogLines } from "../../test/egress/log-lines.ts";
import { MemoryOutbox } from "../../test/webhooks/memory-outbox.ts";
import { type DeliveryOutcome, EventBus, type RecipientList, type SerialisedEvent } from "./event-bus.ts";

const BOOT_MS = Date.UTC(2026, 10, 21, 12, 0, 0, 7);

interface Rig {
  readonly bus: EventBus;
  readonly clock: FakeClock;
  readonly logged: LogLines;
}

function rig(outbox?: MemoryOutbox, bootMs = BOOT_MS): Rig {
  const clock = new FakeClock(bootMs);
  const logged = logLines();
  const bus = new EventBus({ log: logged.log, clock, name: "edge", pid: 42, ...(outbox && { outbox }) });
  return { bus, clock, logged };
}

/** Accepts every event, under the given URLs. */
class Taker implements RecipientList {
  readonly taken: { readonly url: string; readonly event: SerialisedEvent; readonly whenBusy: string }[] = [];
  readonly urls: readonly string[];
  outcome: DeliveryOutcome | Promise<DeliveryOutcome> = "delivered";
  interrupts = 0;

  constructor(...urls: readonly string[]) {
    this.urls = urls;
  }

  recipientsFor(): ReturnType<RecipientList["recipientsFor"]> {
    return this.urls.map((url) => ({
      url,
      deliver: async (event, whenBusy) => {
        this.taken.push({ url, event, whenBusy });
        return await this.outcome;
      },
    }));
  }

  interrupt(): void {
    this.interrupts += 1;
  }

  get upstreams(): string[] {
    return this.taken.map(({ event }) => /"upstream":"([^"]*)"/.exec(event.envelope.toString())?.[1] ?? "");
  }
}

const emitMany = (bus: EventBus, count: number): void => {
  for (let index = 0; index < count; index += 1) bus.emit("breaker_half_open", { upstream: String(index) });
};

test("the envelope has the specified members, in their order, as one serialised text", async () => {
  const { bus } = rig();
  const taker = new Taker("a", "b");
  bus.start(taker);
  bus.emit("breaker_opened", { upstream: "pool", detail: "error_ratio" });
  await waitUntil(() => taker.taken.length === 2);
  const bootHex = BOOT_MS.toString(16);
  assert.equal(
    taker.taken[0]?.event.envelope.toString(),
    `{"id":"evt-${bootHex}-0000000000000000","kind":"breaker_opened","timestamp":"2026-11-21T12:00:00.007Z",` +
      `"gateway":"edge-42-${bootHex}","payload":{"upstream":"pool","detail":"error_ratio"}}`,
  );
  assert.equal(taker.taken[0]?.event.envelope, taker.taken[1]?.event.envelope, "serialised once");
});

test("delivery rule 6: a full queue drops the newest event and counts it; emission never throws", async () => {
  const { bus } = rig();
  const taker = new Taker("a");
  bus.start(taker);
  emitMany(bus, 300);
  assert.deepEqual([bus.emitted, bus.dropped, bus.queued], [256, 44, 256]);
  await waitUntil(() => taker.taken.length === 256);
  assert.deepEqual(
    taker.upstreams,
    Array.from({ length: 256 }, (_, index) => String(index)),
  );
  bus.emit("breaker_half_open", { upstream: "next" });
  await waitUntil(() => taker.taken.length === 257);
  assert.deepEqual([bus.emitted, bus.dropped, bus.queued], [257, 44, 0], "the queue has room again");
});

test("events from before the start are delivered when the deliverer starts, in order", async () => {
  const { bus } = rig();
  emitMany(bus, 3);
  assert.deepEqual([bus.emitted, bus.queued], [3, 3]);
  const taker = new Taker("a");
  bus.start(taker);
  await waitUntil(() => taker.taken.length === 3);
  assert.deepEqual(taker.upstreams, ["0", "1", "2"]);
});

test("delivery rule 6: without a deliverer events beyond the queue are dropped and counted, and after the stop all", async () => {
  const { bus } = rig();
  emitMany(bus, 257);
  assert.deepEqual([bus.emitted, bus.dropped], [256, 1]);
  await bus.stop();
  assert.equal(bus.dropped, 257);
  emitMany(bus, 1);
  assert.equal(bus.dropped, 258);
});

test("without any target events count as emitted and none as dropped", async () => {
  const { bus } = rig();
  bus.start(new Taker());
  emitMany(bus, 200);
  await waitUntil(() => bus.queued === 0);
  assert.deepEqual([bus.emitted, bus.dropped], [200, 0]);
});

test("a throwing recipient or recipient list does not affect later events", async () => {
  const { bus, logged } = rig();
  const taker = new Taker("a");
  let broken = 2;
  bus.start({
    interrupt: () => undefined,
    recipientsFor: () => {
      broken -= 1;
      if (broken === 1) throw new Error("no list");
      if (broken === 0) return [{ url: "x", deliver: async () => await Promise.reject(new Error("broken")) }];
      return taker.recipientsFor();
    },
  });
  emitMany(bus, 3);
  await waitUntil(() => taker.taken.length === 1);
  assert.deepEqual(taker.upstreams, ["2"]);
  assert.equal(logged.coded("event_failed").length, 2);
  assert.equal(bus.dropped, 1);
});

test("a payload that cannot be serialised is counted as dropped, and emission does not throw", () => {
  const { bus } = rig();
  const payload = { upstream: "a", toJSON: () => assert.fail("no text") };
  bus.emit("breaker_half_open", payload);
  assert.equal(bus.dropped, 1);
});

test("an envelope above 16 KiB is marked, and never kept in the store", async () => {
  const outbox = new MemoryOutbox();
  const { bus } = rig(outbox);
  const taker = new Taker("a");
  bus.start(taker);
  bus.emit("breaker_half_open", { upstream: "x".repeat(20_000) });
  bus.emit("breaker_half_open", { upstream: "x".repeat(16_000) });
  await waitUntil(() => taker.taken.length === 2);
  assert.deepEqual(
    taker.taken.map(({ event }) => event.isTooLarge),
    [true, false],
  );
  await bus.stop();
  assert.equal(outbox.acknowledged.length, 1);
});

test("the journal has every event, including dropped ones", () => {
  const { bus } = rig();
  emitMany(bus, 300);
  assert.equal(bus.journal.latest(1000).length, 300);
});

test("a new name appears in later envelopes only", () => {
  const { bus } = rig();
  emitMany(bus, 1);
  bus.rename("core");
  emitMany(bus, 1);
  assert.deepEqual(
    bus.journal.latest(2).map(({ gateway }) => gateway.slice(0, 8)),
    ["core-42-", "edge-42-"],
  );
});

test("delivery rule 7: an event is in the store before it is dispatched", async () => {
  const outbox = new MemoryOutbox();
  const { bus } = rig(outbox);
  const taker = new Taker("a", "b");
  const kept: boolean[] = [];
  const list: RecipientList = {
    interrupt: () => undefined,
    recipientsFor: () =>
      taker.recipientsFor().map((recipient) => ({
        url: recipient.url,
        deliver: async (event, whenBusy) => {
          kept.push(outbox.events.has(event.id));
          return await recipient.deliver(event, whenBusy);
        },
      })),
  };
  bus.start(list);
  emitMany(bus, 3);
  await bus.stop();
  assert.deepEqual(
    kept,
    Array.from({ length: 6 }, () => true),
  );
  assert.equal(outbox.events.size, 0, "acknowledged by both targets");
});

test("delivery rule 7: each target acknowledges separately; an event with an open target stays", async () => {
  const outbox = new MemoryOutbox();
  const { bus } = rig(outbox);
  const open = Promise.withResolvers<DeliveryOutcome>();
  const list: RecipientList = {
    interrupt: () => open.resolve("interrupted"),
    recipientsFor: () => [
      { url: "done", deliver: async () => "delivered" },
      { url: "gave-up", deliver: async () => "failed" },
      { url: "full", deliver: async () => "dropped" },
      { url: "hangs", deliver: async () => await open.promise },
    ],
  };
  bus.start(list);
  emitMany(bus, 1);
  await bus.stop(1);
  assert.deepEqual(
    [...outbox.events.values()].map(({ targets }) => targets),
    [["full", "hangs"]],
  );
});

for (const appends of ["fail", "hang"] as const) {
  test(`delivery rule 7: a store whose writes ${appends} is logged and blocks no emission`, async () => {
    const outbox = new MemoryOutbox();
    outbox.appends = appends;
    const { bus, logged } = rig(outbox);
    const taker = new Taker("a");
    bus.start(taker);
    emitMany(bus, 50);
    assert.equal(bus.emitted, 50);
    await waitUntil(() => taker.taken.length === 50);
    assert.equal(logged.coded("event_wal_append_failed").length, 1, "one line for many failures");
    outbox.release();
    await bus.stop();
    assert.equal(outbox.events.size, 0, "late writes are acknowledged, too");
  });
}

test("delivery rule 7: pending events of an earlier process are replayed to their open targets, oldest first, with its old id", async () => {
  const outbox = new MemoryOutbox();
  const before = rig(outbox);
  const interrupted = new Taker("a", "b");
  interrupted.outcome = "interrupted";
  before.bus.start(interrupted);
  emitMany(before.bus, 3);
  await waitUntil(() => interrupted.taken.length === 6);
  await outbox.acknowledge(interrupted.taken[0]?.event.id ?? "", "a");
  assert.equal(outbox.events.size, 3);

  const after = rig(outbox, BOOT_MS + 5000);
  const taker = new Taker("a", "b");
  after.bus.start(taker);
  emitMany(after.bus, 1);
  await waitUntil(() => outbox.events.size === 0);
  const got = (url: string): string[] => taker.taken.filter((each) => each.url === url).map(({ event }) => event.id);
  const left = interrupted.taken.filter(({ url }) => url === "b").map(({ event }) => event.id);
  assert.deepEqual(
    got("a").filter((id) => left.includes(id)),
    left.slice(1),
  );
  assert.deepEqual(
    got("b").filter((id) => left.includes(id)),
    left,
  );
  assert.equal(taker.taken.length, 5 + 2);
  assert.equal(after.bus.replayed, 3);
  const replayedEvent = taker.taken.find(({ event }) => event.id === left[0])?.event;
  assert.deepEqual(replayedEvent, interrupted.taken[0]?.event, "the same bytes");
});

test("delivery rule 7: an event for a removed target is kept for a day, then dropped", async () => {
  const outbox = new MemoryOutbox();
  const { bus, clock } = rig(outbox);
  const leave = async (id: string, ageMs: number, kind = "breaker_closed"): Promise<void> =>
    await outbox.append({ id, kind, createdMs: clock.now() - ageMs, envelope: "{}", targets: ["gone", "a"] });
  await leave("evt-0-1", 86_400_001);
  await leave("evt-0-2", 86_400_001, "no_such_kind");
  await leave("evt-0-3", 86_399_999);
  const taker = new Taker("a");
  bus.start(taker);
  await waitUntil(() => outbox.acknowledged.length === 5);
  await bus.stop();
  assert.deepEqual(
    taker.taken.map(({ url, event }) => `${url} ${event.id}`),
    ["a evt-0-1", "a evt-0-3"],
  );
  assert.deepEqual(
    [...outbox.events.values()].map(({ id, targets }) => `${id} ${targets.join()}`),
    ["evt-0-3 gone"],
  );
  assert.equal(taker.taken[0]?.whenBusy, "wait", "a replay is queued, not dropped");
  assert.equal(bus.replayed, 2, "an event without a recipient does not count as replayed");
});

test("delivery rule 7: an unresponsive target does not delay other replays", async () => {
  const outbox = new MemoryOutbox();
  for (let index = 0; index < 5; index += 1) {
    await outbox.append({
      id: `evt-0-${index}`,
      kind: "breaker_closed",
      createdMs: 1,
      envelope: "{}",
      targets: ["hangs", "a"],
    });
  }
  const { bus } = rig(outbox);
  const open = Promise.withResolvers<DeliveryOutcome>();
  const taker = new Taker("a");
  bus.start({
    interrupt: () => open.resolve("interrupted"),
    recipientsFor: () => [{ url: "hangs", deliver: async () => await open.promise }, ...taker.recipientsFor()],
  });
  await waitUntil(() => taker.taken.length === 5);
  await bus.stop(1);
  assert.ok([...outbox.events.values()].every(({ targets }) => targets.join() === "hangs"));
});

test("delivery rule 7: critical events that a full queue drops are kept for the next start", async () => {
  const outbox = new MemoryOutbox();
  outbox.appends = "hang";
  const { bus } = rig(outbox);
  const taker = new Taker("a");
  bus.start(taker);
  emitMany(bus, 260);
  assert.equal(bus.dropped, 4);
  outbox.release();
  await bus.stop();
  assert.equal(outbox.events.size, 4);
});

test("delivery rule 7: an event of this process is not replayed, although the store lists it", async () => {
  const outbox = new MemoryOutbox();
  await outbox.append({ id: "evt-0-1", kind: "breaker_closed", createdMs: 1, envelope: "{}", targets: ["a"] });
  const { bus } = rig(outbox);
  const taker = new Taker("a");
  taker.outcome = new Promise(() => undefined);
  const pending = outbox.pending.bind(outbox);
  outbox.pending = async () => {
    await waitUntil(() => outbox.events.size === 2);
    return await pending();
  };
  bus.start(taker);
  emitMany(bus, 1);
  await waitUntil(() => taker.taken.length === 2);
  const handed = taker.taken.map(({ event, whenBusy }) => `${event.id === "evt-0-1" ? "old" : "own"} ${whenBusy}`);
  assert.deepEqual([bus.replayed, handed.toSorted()], [1, ["old wait", "own drop"]]);
});

test("delivery rule 7: a hung store collects a bounded number of writes", async () => {
  const outbox = new MemoryOutbox();
  outbox.appends = "hang";
  const { bus } = rig(outbox);
  bus.start(new Taker("a"));
  emitMany(bus, 3000);
  assert.equal(outbox.begun, 1024);
  outbox.release();
  await bus.stop();
  assert.equal(bus.emitted + bus.dropped, 3000);
});

test("a store that cannot list pending events is logged, and new events are sent", async () => {
  const outbox = new MemoryOutbox();
  outbox.pending = async () => await Promise.reject(new Error("corrupt"));
  const { bus, logged } = rig(outbox);
  const taker = new Taker("a");
  bus.start(taker);
  emitMany(bus, 1);
  await waitUntil(() => taker.taken.length === 1);
  assert.equal(logged.coded("event_wal_replay_failed").length, 1);
});

test("the stop lets active deliveries end, and interrupts them after the grace period", async () => {
  const { bus } = rig();
  const taker = new Taker("a");
  const outcome = Promise.withResolvers<DeliveryOutcome>();
  taker.outcome = outcome.promise;
  bus.start(taker);
  emitMany(bus, 1);
  const stopped = bus.stop(30_000);
  await waitUntil(() => taker.taken.length === 1);
  outcome.resolve("delivered");
  await stopped;
  assert.equal(taker.interrupts, 0);
});

test("an example is an event of its kind with an id of its own, and is neither counted nor in the journal", () => {
  const { bus } = rig();
  const made = EVENT_KINDS.map((kind) => bus.example(kind));
  for (const [index, event] of made.entries()) {
    const envelope: unknown = JSON.parse(event.envelope.toString());
    assert.ok(typeof envelope === "object" && envelope !== null && "kind" in envelope && "id" in envelope);
    assert.deepEqual([envelope.kind, envelope.id], [EVENT_KINDS[index], event.id]);
  }
  assert.equal(new Set(made.map(({ id }) => id)).size, EVENT_KINDS.length);
  assert.deepEqual([bus.emitted, bus.dropped, bus.journal.latest(9).length], [0, 0, 0]);
});

test("an event of the journal can be sent again with the same bytes", async () => {
  const { bus } = rig();
  const taker = new Taker("a");
  bus.start(taker);
  emitMany(bus, 1);
  await waitUntil(() => taker.taken.length === 1);
  const [kept] = bus.journal.latest(1);
  assert.deepEqual(kept && bus.again(kept), taker.taken[0]?.event);
});

test("the counts add up: every emission is accepted or dropped, and accepted events are dispatched once, in order", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 5 }),
      fc.boolean(),
      async (bursts, isStored) => {
        const { bus } = rig(isStored ? new MemoryOutbox() : undefined);
        const taker = new Taker("a");
        bus.start(taker);
        let calls = 0;
        for (const count of bursts) {
          emitMany(bus, count);
          calls += count;
          await new Promise((resolve) => setImmediate(resolve));
        }
        assert.equal(bus.emitted + bus.dropped, calls);
        await bus.stop();
        assert.equal(taker.taken.length, bus.emitted);
        const ids = taker.taken.map(({ event }) => event.id);
        assert.deepEqual(ids.toSorted(), ids);
        assert.equal(new Set(ids).size, ids.length);
      },
    ),
    { numRuns: 40 },
  );
});

test("breakers and endpoints are logged even without recipients", () => {
  const { bus, logged } = rig();
  bus.emit("breaker_opened", { upstream: "u", detail: "error_ratio" });
  bus.emit("endpoint_ejected", { upstream: "u", endpoint: "192.0.2.1:80" });
  bus.emit("endpoint_recovered", { upstream: "u", endpoint: "192.0.2.1:80" });
  bus.emit("config_published", { generation: 1, content_hash: 1, route_count: 1 });
  assert.deepEqual(
    logged.lines.map(({ level, code, upstream, detail, endpoint }) => [level, code, upstream, detail ?? endpoint]),
    [
      [40, "breaker_opened", "u", "error_ratio"],
      [40, "endpoint_ejected", "u", "192.0.2.1:80"],
      [30, "endpoint_recovered", "u", "192.0.2.1:80"],
    ],
  );
});
