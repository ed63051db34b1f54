import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventEnvelope } from "@headworks/gateway-contract";
import { EventJournal } from "./event-bus.ts";

const event = (id: string): EventEnvelope => ({
  id,
  kind: "breaker_half_open",
  timestamp: "2026-11-21T00:00:00.000Z",
  gateway: "gateway-1-19aa",
  payload: { upstream: "pool" },
});
const ids = (events: readonly EventEnvelope[]): string[] => events.map(({ id }) => id);

function filled(capacity: number, count: number): EventJournal {
  const journal = new EventJournal(capacity);
  for (let index = 1; index <= count; index += 1) journal.add(event(`evt-1-${index}`));
  return journal;
}

test("the latest events come newest first, and the oldest are dropped beyond the capacity", () => {
  const journal = filled(3, 5);
  assert.deepEqual(ids(journal.latest(10)), ["evt-1-5", "evt-1-4", "evt-1-3"]);
  assert.deepEqual(ids(journal.latest(2)), ["evt-1-5", "evt-1-4"]);
  assert.deepEqual(journal.latest(0), []);
});

const pages: [name: string, since: string, expected: string[], isComplete: boolean][] = [
  ["after a kept event", "evt-1-4", ["evt-1-5"], true],
  ["after the last event", "evt-1-5", [], true],
  ["after a dropped event", "evt-1-1", ["evt-1-3", "evt-1-4", "evt-1-5"], false],
  ["after an event of an earlier process", "evt-0-9", ["evt-1-3", "evt-1-4", "evt-1-5"], false],
];
for (const [name, since, expected, isComplete] of pages) {
  test(`the events ${name} are ${expected.length}, ${isComplete ? "complete" : "incomplete"}`, () => {
    const page = filled(3, 5).since(since);
    assert.deepEqual({ ids: ids(page.events), isComplete: page.isComplete }, { ids: expected, isComplete });
  });
}

test("events of an earlier process are not kept, so a page after one is incomplete", () => {
  assert.equal(filled(3, 2).since("evt-0-9").isComplete, false);
  assert.equal(filled(3, 2).since("of somebody else").isComplete, false);
  assert.equal(filled(3, 2).since("evt-1-0").isComplete, true);
});

test("a range of ids includes both ends", () => {
  assert.deepEqual(ids(filled(9, 5).between("evt-1-2", "evt-1-4")), ["evt-1-2", "evt-1-3", "evt-1-4"]);
});

test("listeners get every event until they unsubscribe; one that throws is removed", () => {
  const journal = new EventJournal();
  const heard: string[] = [];
  let throws = 0;
  journal.subscribe(() => {
    throws += 1;
    throw new Error("broken listener");
  });
  const stop = journal.subscribe(({ id }) => heard.push(id));
  journal.add(event("evt-1-1"));
  journal.add(event("evt-1-2"));
  stop();
  journal.add(event("evt-1-3"));
  assert.deepEqual(heard, ["evt-1-1", "evt-1-2"]);
  assert.equal(throws, 1);
});
