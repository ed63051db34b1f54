import assert from "node:assert/strict";
import { test } from "node:test";
import type { TrafficEvent, TrafficSnapshot } from "@headworks/capture-contract";
import fc from "fast-check";
import { fakeRow } from "../../../../test/fake-rows.ts";
import type { ListScope, Window } from "./row-sequence.ts";
import { type ListClock, positionOfEntry, TrafficList, type WindowSource } from "./traffic-list.ts";

/** A clock advanced by hand. */
class TestClock implements ListClock {
  #now = 0;
  #timers: { at: number; callback: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      const due = this.#timers.filter((timer) => timer.at <= end).toSorted((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.#now = due.at;
      due.callback();
      await settle();
    }
    this.#now = end;
    await settle();
  }
}

/** Lets pending promises settle. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
}

/** A service with rows oldest first; responds immediately unless held. */
class TestService {
  rows: TrafficSnapshot[] = [];
  calls: { scope: ListScope; offset: number }[] = [];
  held: (() => void)[] | undefined;
  failure: Error | undefined;
  /** Rows counted so far; a window is always complete. */
  counted = Infinity;
  #seq = 0;

  constructor(count: number) {
    for (let index = 0; index < count; index += 1) this.add();
  }

  add(changes: Partial<TrafficSnapshot> = {}): TrafficEvent {
    this.#seq += 1;
    const row = fakeRow(this.#seq, changes);
    this.rows.push(row);
    return { type: "Added", data: row };
  }

  remove(...ids: readonly string[]): TrafficEvent {
    this.rows = this.rows.filter((row) => !ids.includes(row.id));
    return { type: "Deleted", data: ids };
  }

  update(id: string, changes: Partial<TrafficSnapshot>): TrafficEvent {
    const index = this.rows.findIndex((row) => row.id === id);
    const row = this.rows[index];
    assert.ok(row);
    const changed = { ...row, ...changes };
    this.rows[index] = changed;
    return { type: "Updated", data: changed };
  }

  readonly source: WindowSource = async (scope, offset, limit, signal) => {
    this.calls.push({ scope, offset });
    if (this.held !== undefined) await new Promise<void>((resolve) => this.held?.push(resolve));
    signal.throwIfAborted();
    if (this.failure !== undefined) throw this.failure;
    return this.window(scope, offset, limit);
  };

  window(scope: ListScope, offset: number, limit: number): Window {
    const wanted = /^status:(\d+)$/u.exec(scope.q)?.[1];
    const rows = wanted === undefined ? this.rows : this.rows.filter((row) => row.status_code === Number(wanted));
    const sorted = scope.order === "desc" ? rows.toReversed() : rows;
    const counted = Math.min(rows.length, Math.max(this.counted, offset + limit));
    return { total: counted, total_complete: counted === rows.length, rows: sorted.slice(offset, offset + limit) };
  }

  async release(): Promise<void> {
    const waiting = this.held ?? [];
    this.held = undefined;
    for (const go of waiting) go();
    await settle();
  }
}

const NEWEST: ListScope = { q: "", sort: "seq", order: "desc", session: null };

async function listOf(
  service: TestService,
  scope: ListScope = NEWEST,
): Promise<{ list: TrafficList; clock: TestClock }> {
  const clock = new TestClock();
  const list = new TrafficList(service.source, clock);
  list.setScope(scope);
  await clock.advance(0);
  return { list, clock };
}

const seqs = (list: TrafficList, from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => list.rowAt(from + index)?.seq);

test("the first window has the newest rows", async () => {
  const { list } = await listOf(new TestService(1000));
  assert.equal(list.length, 1000);
  assert.deepEqual(seqs(list, 0, 2), [1000, 999, 998]);
});

test("while the count is incomplete the list is refetched, and older rows found are not new", async () => {
  const service = new TestService(1000);
  service.counted = 300;
  const { list, clock } = await listOf(service, { ...NEWEST, q: "status:200" });
  assert.equal(list.length, 300);
  assert.equal(list.isLengthKnown, false);
  list.setFollowing(false);
  list.setRange(290, 299);
  service.counted = 600;
  await clock.advance(50);
  assert.equal(list.length, 600);
  assert.equal(list.newCount, 0);
  assert.deepEqual(seqs(list, 290, 292), [710, 709, 708]);
  service.counted = 1000;
  await clock.advance(2000);
  assert.equal(list.length, 1000);
  assert.equal(list.isLengthKnown, true);
  assert.equal(list.newCount, 0);
  const calls = service.calls.length;
  await clock.advance(5000);
  assert.equal(service.calls.length, calls, "nothing more is asked once everything is counted");
});

test("additions appear on top together at the next flush", async () => {
  const service = new TestService(5);
  const { list, clock } = await listOf(service);
  let changes = 0;
  list.subscribe(() => (changes += 1));
  for (let count = 0; count < 50; count += 1) list.apply([service.add()]);
  assert.equal(changes, 0);
  await clock.advance(100);
  assert.equal(changes, 1);
  assert.deepEqual(seqs(list, 0, 2), [55, 54, 53]);
  assert.equal(list.length, 55);
});

test("away from the top no row moves, and additions are counted", async () => {
  const service = new TestService(500);
  const { list, clock } = await listOf(service);
  list.setFollowing(false);
  list.setRange(100, 130);
  await clock.advance(100);
  const before = seqs(list, 100, 130);
  for (let count = 0; count < 7; count += 1) list.apply([service.add()]);
  await clock.advance(100);
  assert.deepEqual(seqs(list, 100, 130), before);
  assert.equal(list.newCount, 7);
  assert.equal(list.length, 500);
  list.setFollowing(true);
  assert.equal(list.newCount, 0);
  assert.equal(list.rowAt(0)?.seq, 507);
});

test("a window requested while additions are hidden is aligned", async () => {
  const service = new TestService(3000);
  const { list, clock } = await listOf(service);
  list.setFollowing(false);
  for (let count = 0; count < 10; count += 1) list.apply([service.add()]);
  await clock.advance(100);
  list.setRange(1500, 1530);
  await clock.advance(100);
  assert.deepEqual(seqs(list, 1500, 1502), [1500, 1499, 1498]);
});

test("changes arrive in place", async () => {
  const service = new TestService(5);
  const { list, clock } = await listOf(service);
  list.apply([service.update("id-3", { status_code: 500 })]);
  await clock.advance(100);
  assert.equal(list.rowAt(2)?.status_code, 500);
  assert.equal(service.calls.length, 1);
});

test("an addition that was already fetched is not duplicated", async () => {
  const service = new TestService(5);
  const clock = new TestClock();
  const list = new TrafficList(service.source, clock);
  const event = service.add();
  list.setScope(NEWEST);
  await clock.advance(0);
  list.apply([event]);
  await clock.advance(100);
  assert.equal(list.length, 6);
  assert.deepEqual(seqs(list, 0, 1), [6, 5]);
});

test("rows below deleted ones move up, and rows removed by the quota shorten the list", async () => {
  const service = new TestService(400);
  const { list, clock } = await listOf(service);
  list.apply([service.remove("id-399"), service.add(), service.remove("id-1")]);
  await clock.advance(100);
  assert.deepEqual(seqs(list, 0, 2), [401, 400, 398]);
  assert.equal(list.length, 399);
});

test("clearing empties the list at once", async () => {
  const service = new TestService(10);
  const { list, clock } = await listOf(service);
  service.rows = [];
  list.apply([{ type: "Cleared" }]);
  await clock.advance(100);
  assert.equal(list.length, 0);
  assert.equal(list.rowAt(0), undefined);
});

test("a filtered list is fetched again after events, at most once a second", async () => {
  const service = new TestService(0);
  for (let count = 0; count < 30; count += 1) service.add({ status_code: count % 3 === 0 ? 500 : 200 });
  const { list, clock } = await listOf(service, { ...NEWEST, q: "status:500" });
  assert.equal(list.length, 10);
  for (let round = 0; round < 20; round += 1) {
    list.apply([service.add({ status_code: 500 })]);
    await clock.advance(100);
  }
  await clock.advance(2000);
  assert.equal(list.length, 30);
  assert.equal(list.rowAt(0)?.seq, 50);
  assert.ok(service.calls.length <= 5, String(service.calls.length));
});

test("a filtered list keeps its rows in place away from the top", async () => {
  const service = new TestService(0);
  for (let count = 0; count < 600; count += 1) service.add({ status_code: 500 });
  const { list, clock } = await listOf(service, { ...NEWEST, q: "status:500" });
  list.setFollowing(false);
  list.setRange(100, 120);
  await clock.advance(100);
  const before = seqs(list, 100, 120);
  for (let count = 0; count < 9; count += 1) list.apply([service.add({ status_code: 500 })]);
  await clock.advance(3000);
  assert.deepEqual(seqs(list, 100, 120), before);
  assert.equal(list.newCount, 9);
  list.setFollowing(true);
  await clock.advance(100);
  assert.equal(list.length, 609);
});

test("the previous rows stay until the new list has loaded, and late responses of the old list are ignored", async () => {
  const service = new TestService(10);
  const { list, clock } = await listOf(service);
  service.held = [];
  list.setScope({ ...NEWEST, order: "asc" });
  assert.equal(list.loaded, false);
  assert.equal(list.rowAt(0)?.seq, 10);
  list.setScope({ ...NEWEST, q: "status:404" });
  await service.release();
  await clock.advance(0);
  assert.equal(list.length, 0);
  assert.equal(list.loaded, true);
});

test("fast scrolling requests few windows, and the last position", async () => {
  const service = new TestService(100_000);
  const { list, clock } = await listOf(service);
  service.calls = [];
  for (let step = 1; step <= 100; step += 1) {
    list.setRange(step * 900, step * 900 + 30);
    await clock.advance(16);
  }
  await clock.advance(200);
  assert.ok(service.calls.length < 50, String(service.calls.length));
  assert.equal(list.rowAt(90_010)?.seq, 9990);
});

test("a failure is reported until the next success", async () => {
  const service = new TestService(5);
  service.failure = new Error("down");
  const { list, clock } = await listOf(service);
  assert.equal((list.error as Error).message, "down");
  assert.equal(list.loaded, false);
  service.failure = undefined;
  list.resync();
  await clock.advance(0);
  assert.equal(list.error, undefined);
  assert.equal(list.length, 5);
});

test("ids between two places include rows that are not loaded", async () => {
  const service = new TestService(5000);
  const { list } = await listOf(service);
  const ids = await list.idsBetween(10, 3009, 10_000);
  assert.equal(ids.length, 3000);
  assert.equal(ids[0], "id-4990");
  assert.equal(ids.at(-1), "id-1991");
  assert.equal((await list.idsBetween(0, 4999, 100)).length, 100);
});

test("a resync adds rows whose events were missed, few or many", async () => {
  for (const missed of [3, 450]) {
    const service = new TestService(300);
    const { list, clock } = await listOf(service);
    for (let count = 0; count < missed; count += 1) service.add();
    list.resync();
    await clock.advance(100);
    assert.equal(list.length, 300 + missed);
    assert.equal(list.rowAt(0)?.seq, 300 + missed);
    list.apply([service.add()]);
    await clock.advance(100);
    assert.deepEqual(seqs(list, 0, 1), [301 + missed, 300 + missed]);
    assert.equal(list.length, 301 + missed);
  }
});

type Step =
  | { readonly kind: "add" | "evict" | "change" | "wait" | "resync" }
  | { readonly kind: "delete" | "look"; readonly position: number }
  | { readonly kind: "follow"; readonly on: boolean };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.constantFrom<Step>(
      { kind: "add" },
      { kind: "evict" },
      { kind: "change" },
      { kind: "wait" },
      { kind: "resync" },
    ),
  },
  fc.record({
    kind: fc.constantFrom("delete" as const, "look" as const),
    position: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  fc.record({ kind: fc.constant("follow" as const), on: fc.boolean() }),
);

test("after any sequence of events the list equals the service's", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 0, max: 900 }), async (steps, count) => {
      const service = new TestService(count);
      const { list, clock } = await listOf(service);
      for (const { kind, ...rest } of steps) {
        const row = service.rows[Math.floor(("position" in rest ? rest.position : 0.5) * service.rows.length)];
        if (kind === "add") list.apply([service.add()]);
        else if (kind === "evict" && service.rows[0] !== undefined) list.apply([service.remove(service.rows[0].id)]);
        else if (kind === "delete" && row !== undefined) list.apply([service.remove(row.id)]);
        else if (kind === "change" && row !== undefined) list.apply([service.update(row.id, { status_code: 503 })]);
        else if (kind === "look" && "position" in rest) {
          const first = Math.floor(rest.position * list.length);
          list.setRange(first, Math.min(first + 30, list.length - 1));
        } else if (kind === "follow" && "on" in rest) list.setFollowing(rest.on);
        else if (kind === "resync") list.resync();
        else await clock.advance(60);
      }
      list.setFollowing(true);
      list.setRange(0, 30);
      await clock.advance(5000);
      list.resync();
      await clock.advance(5000);
      const expected = service.rows.toReversed();
      assert.equal(list.length, expected.length);
      const shown = Math.min(expected.length, 31);
      assert.deepEqual(
        Array.from({ length: shown }, (_, index) => list.rowAt(index)),
        expected.slice(0, shown),
      );
    }),
    { numRuns: 300 },
  );
});

const SOUGHT = fakeRow(40);

/** A list of 100 rows, of which only number 100 is loaded. */
function partialList(scope: Partial<ListScope> = {}, newCount = 0) {
  return {
    scope: { q: "", sort: "seq", order: "desc", session: null, ...scope } as const,
    newCount,
    length: 100,
    indexOf: (id: string) => (id === fakeRow(100).id ? 0 : undefined),
  };
}

/** A service that finds the row, with the given number above it. */
function serviceOf(total: number, isComplete = true) {
  const queries: string[] = [];
  const firstRow = async (q: string) => {
    queries.push(q);
    const isById = q.endsWith(`id:${SOUGHT.id}`);
    return await Promise.resolve(
      isById
        ? { total: 1, total_complete: true, rows: [SOUGHT] }
        : { total, total_complete: isComplete, rows: [fakeRow(99)] },
    );
  };
  return { queries, firstRow };
}

test("the position of an entry is the number of rows above it, in both orders and with a filter", async () => {
  const newest = serviceOf(60);
  assert.equal(await positionOfEntry(partialList(), SOUGHT.id, newest.firstRow), 60);
  assert.deepEqual(newest.queries, [`id:${SOUGHT.id}`, "seq:>40"]);
  const oldest = serviceOf(20);
  const filtered = partialList({ q: "a OR b", order: "asc" });
  assert.equal(await positionOfEntry(filtered, SOUGHT.id, oldest.firstRow), 20);
  assert.deepEqual(oldest.queries, [`(a OR b) id:${SOUGHT.id}`, "(a OR b) seq:<40"]);
});

test("hidden new rows do not count as rows above an entry", async () => {
  assert.equal(await positionOfEntry(partialList({}, 5), SOUGHT.id, serviceOf(60).firstRow), 55);
});

test("the position of a loaded row needs no request", async () => {
  const { queries, firstRow } = serviceOf(60);
  assert.equal(await positionOfEntry(partialList(), fakeRow(100).id, firstRow), 0);
  assert.deepEqual(queries, []);
});

test("an incomplete count, or one beyond the list, gives no position", async () => {
  assert.equal(await positionOfEntry(partialList(), SOUGHT.id, serviceOf(60, false).firstRow), undefined);
  assert.equal(await positionOfEntry(partialList(), SOUGHT.id, serviceOf(100).firstRow), undefined);
});

test("an entry that is not in the list, or in another order, has no position", async () => {
  assert.equal(await positionOfEntry(partialList(), fakeRow(41).id, serviceOf(60).firstRow), undefined);
  assert.equal(await positionOfEntry(partialList({ sort: "host" }), SOUGHT.id, serviceOf(60).firstRow), undefined);
});
