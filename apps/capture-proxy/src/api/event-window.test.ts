import assert from "node:assert/strict";
import { test } from "node:test";
import type { TrafficEvent } from "@headworks/capture-contract";
import { row } from "../../test/rows.ts";
import { coalesce } from "./events.ts";

const added = (id: string, state: "pending" | "complete" = "pending"): TrafficEvent => ({
  type: "Added",
  data: row({ id, state }),
});
const updated = (id: string, state: "pending" | "complete" = "complete"): TrafficEvent => ({
  type: "Updated",
  data: row({ id, state }),
});
const deleted = (...ids: string[]): TrafficEvent => ({ type: "Deleted", data: ids });
const cleared: TrafficEvent = { type: "Cleared" };
const count = (data: number): TrafficEvent => ({ type: "CountUpdate", data });

test("a window comes down to one event for each entry, in order, with the latest row", () => {
  const table: readonly (readonly [string, readonly TrafficEvent[], readonly TrafficEvent[]])[] = [
    ["nothing", [], []],
    [
      "added and updated is added, complete",
      [added("a"), added("b"), updated("a")],
      [added("a", "complete"), added("b")],
    ],
    ["updated twice", [updated("a", "pending"), updated("a")], [updated("a")]],
    ["deleted after added", [added("a"), added("b"), deleted("a")], [added("b"), deleted("a")]],
    ["added again after deleted", [added("a"), deleted("a"), added("a")], [deleted("a"), added("a")]],
    ["cleared drops what was before", [added("a"), deleted("x"), count(4), cleared, added("b")], [cleared, added("b")]],
    ["an update after clearing stands alone", [added("a"), cleared, updated("a")], [cleared, updated("a")]],
    ["last count only, at its place", [count(1), added("a"), count(2)], [added("a"), count(2)]],
  ];
  for (const [what, events, expected] of table) assert.deepEqual(coalesce(events), expected, what);
});
