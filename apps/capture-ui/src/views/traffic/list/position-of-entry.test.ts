import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeRow } from "../../../../test/fake-rows.ts";
import { positionOfEntry } from "./position-of-entry.ts";
import type { ListScope } from "./row-sequence.ts";

const SOUGHT = fakeRow(40);

/** A list of 100 rows, of which only number 100 is loaded. */
function listOf(scope: Partial<ListScope> = {}, newCount = 0) {
  return {
    scope: { q: "", sort: "seq", order: "desc", session: null, ...scope } as const,
    newCount,
    length: 100,
    indexOf: (id: string) => (id === fakeRow(100).id ? 0 : undefined),
  };
}

/** A service that finds the row, with the given number above it. */
function serviceOf(total: number, isComplete = true) {
  const asked: string[] = [];
  const firstRow = async (q: string) => {
    asked.push(q);
    const isById = q.endsWith(`id:${SOUGHT.id}`);
    return await Promise.resolve(
      isById
        ? { total: 1, total_complete: true, rows: [SOUGHT] }
        : { total, total_complete: isComplete, rows: [fakeRow(99)] },
    );
  };
  return { asked, firstRow };
}

test("an entry stands below those that the service counts above it, whatever the direction and the filter", async () => {
  const newest = serviceOf(60);
  assert.equal(await positionOfEntry(listOf(), SOUGHT.id, newest.firstRow), 60);
  assert.deepEqual(newest.asked, [`id:${SOUGHT.id}`, "seq:>40"]);
  const oldest = serviceOf(20);
  const filtered = listOf({ q: "a OR b", order: "asc" });
  assert.equal(await positionOfEntry(filtered, SOUGHT.id, oldest.firstRow), 20);
  assert.deepEqual(oldest.asked, [`(a OR b) id:${SOUGHT.id}`, "(a OR b) seq:<40"]);
});

test("rows that are not shown yet are not above an entry", async () => {
  assert.equal(await positionOfEntry(listOf({}, 5), SOUGHT.id, serviceOf(60).firstRow), 55);
});

test("an entry whose row is loaded needs no count", async () => {
  const { asked, firstRow } = serviceOf(60);
  assert.equal(await positionOfEntry(listOf(), fakeRow(100).id, firstRow), 0);
  assert.deepEqual(asked, []);
});

test("a count that was not brought to its end is no place, nor is one that the list does not reach", async () => {
  assert.equal(await positionOfEntry(listOf(), SOUGHT.id, serviceOf(60, false).firstRow), undefined);
  assert.equal(await positionOfEntry(listOf(), SOUGHT.id, serviceOf(100).firstRow), undefined);
});

test("an entry that the list does not have, or in another order, has no place", async () => {
  assert.equal(await positionOfEntry(listOf(), fakeRow(41).id, serviceOf(60).firstRow), undefined);
  assert.equal(await positionOfEntry(listOf({ sort: "host" }), SOUGHT.id, serviceOf(60).firstRow), undefined);
});
