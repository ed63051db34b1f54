import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { PagedRows } from "./paged-rows.ts";

/** A growing list of numbers that records requests. */
function source(length: number) {
  const asked: number[] = [];
  const state = { length, asked, factor: 1, isBroken: false };
  const rows = new PagedRows<number>(
    async (offset, limit) => {
      asked.push(offset);
      const { factor, isBroken } = state;
      await Promise.resolve();
      if (isBroken) throw new Error("away");
      const end = Math.min(state.length, offset + limit);
      const page = Array.from({ length: Math.max(0, end - offset) }, (_, index) => (offset + index) * factor);
      return { rows: page, total: state.length };
    },
    10,
    4,
  );
  return { rows, state };
}

test("pages in view are fetched once, and the number of held pages is limited", async () => {
  const { rows, state } = source(100_000);
  rows.refresh();
  await nextTurn();
  assert.deepEqual([rows.total, rows.isLoaded, rows.row(9), rows.row(10)], [100_000, true, 9, undefined]);
  for (let from = 0; from < 100_000; from += 997) {
    rows.want(from, from + 25);
    await nextTurn();
    assert.equal(rows.row(from), from);
    assert.equal(rows.row(Math.min(99_999, from + 24)), Math.min(99_999, from + 24));
    assert.ok(rows.heldRows <= 50);
  }
  rows.want(99_990, 100_000);
  await nextTurn();
  const before = state.asked.length;
  rows.want(99_990, 100_000);
  await nextTurn();
  assert.equal(state.asked.length, before);
});

test("a growing list fetches only its last page", async () => {
  const { rows, state } = source(25);
  rows.refresh();
  await nextTurn();
  rows.want(0, 25);
  await nextTurn();
  state.asked.length = 0;
  state.length = 27;
  rows.grow();
  await nextTurn();
  rows.want(0, 27);
  await nextTurn();
  assert.deepEqual(state.asked, [20]);
  assert.deepEqual([rows.total, rows.row(26)], [27, 26]);
});

test("a list that grows by more than a page, also from empty, has its full length", async () => {
  const { rows, state } = source(0);
  rows.refresh();
  await nextTurn();
  state.length = 45;
  rows.grow();
  await nextTurn();
  rows.want(0, 45);
  await nextTurn();
  assert.deepEqual([rows.total, rows.row(0), rows.row(44)], [45, 0, 44]);
});

test("after a refresh the old rows stay until the new ones are there", async () => {
  const { rows, state } = source(10);
  rows.refresh();
  await nextTurn();
  state.factor = 2;
  rows.refresh();
  assert.equal(rows.row(3), 3);
  await nextTurn();
  assert.equal(rows.row(3), 6);
});

test("a refresh during a fetch is applied afterwards", async () => {
  const { rows, state } = source(10);
  rows.refresh();
  await nextTurn();
  rows.refresh();
  state.factor = 3;
  rows.refresh();
  await nextTurn();
  assert.equal(rows.row(1), 3);
});

test("a page that left the view during its fetch is fetched again after a refresh", async () => {
  const { rows, state } = source(40);
  rows.refresh();
  await nextTurn();
  rows.want(10, 20);
  rows.want(0, 10);
  state.factor = 3;
  rows.refresh();
  await nextTurn();
  rows.want(10, 20);
  await nextTurn();
  assert.deepEqual([rows.row(1), rows.row(11)], [3, 33]);
});

test("incomplete rows are shown until complete ones are loaded, and never replace complete ones", async () => {
  let finish = Promise.withResolvers<undefined>();
  const rows = new PagedRows<string>(async (_offset, _limit, _signal, showEarly) => {
    showEarly({ rows: ["part"], total: 1 });
    await finish.promise;
    return { rows: ["whole"], total: 1 };
  });
  rows.refresh();
  assert.deepEqual([rows.isLoaded, rows.total, rows.row(0)], [true, 1, "part"]);
  finish.resolve(undefined);
  await nextTurn();
  assert.equal(rows.row(0), "whole");
  finish = Promise.withResolvers<undefined>();
  rows.refresh();
  assert.equal(rows.row(0), "whole");
  rows.close();
});

test("a failure is reported until the next success; rows stay, and rendering requests nothing", async () => {
  const { rows, state } = source(10);
  let changes = 0;
  rows.subscribe(() => (changes += 1));
  rows.refresh();
  await nextTurn();
  state.isBroken = true;
  rows.refresh();
  await nextTurn();
  assert.match(String(rows.error), /away/);
  assert.equal(rows.row(1), 1);
  const asked = state.asked.length;
  rows.want(0, 10);
  assert.equal(state.asked.length, asked);
  state.isBroken = false;
  rows.refresh();
  await nextTurn();
  assert.equal(rows.error, null);
  assert.equal(rows.snapshot(), changes);
});

test("a closed list does not notify", async () => {
  const { rows } = source(10);
  let changes = 0;
  rows.subscribe(() => (changes += 1));
  rows.refresh();
  rows.close();
  await nextTurn();
  assert.equal(changes, 0);
});
