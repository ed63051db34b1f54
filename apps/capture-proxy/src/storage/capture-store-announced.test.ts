import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { sampleFrame } from "./read/sample-exchange.ts";
import { NEVER, openRig } from "./store-rig.ts";
import type { StoreRig } from "./store-rig.ts";

/** Numbers of `/asked` entries found by queries that follow the recording of another one immediately. */
const QUESTIONS: readonly (readonly [string, (rig: StoreRig, id: string) => Promise<number>])[] = [
  ["the newest rows", async ({ store }) => (await store.latestRows(100, {}, NEVER)).length],
  ["a list", async (rig) => (await rig.rows()).total],
  ["a filtered list", async (rig) => (await rig.rows({ q: "path:/asked" })).total],
  ["a sorted list", async (rig) => (await rig.rows({}, { sort: "duration_ms" })).total],
  ["a count", async ({ store }) => await store.count({}, NEVER)],
  ["a summary", async ({ store }) => (await store.summarize({}, NEVER)).total],
  ["a row by its id", async ({ store }, id) => (await store.getRow(id))?.seq ?? 0],
  ["an entry by its id", async (rig, id) => (await rig.entry(id))?.seq ?? 0],
];

test("every kind of query finds an exchange as soon as it was announced", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  let recorded = 0;
  // Twice: the first query of a thread waits for its start, so entries are committed meanwhile.
  for (const [name, ask] of [...QUESTIONS, ...QUESTIONS]) {
    const { id } = rig.add({ path: "/asked" });
    recorded += 1;
    assert.equal(await ask(rig, id), recorded, name);
  }
});

test("a query finds frames that were recorded just before", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const exchange = rig.addAs(rig.store.nextSeq(), { state: { step: "responding" } });
  const stream = rig.store.streams.open(exchange, "sse");
  for (let frames = 1; frames < 5; frames += 1) {
    stream.frame(sampleFrame("event", { direction: "receive" }));
    const { total } = await rig.store.streams.listFrames({ streamId: exchange.id, limit: 1, offset: 0, order: "asc" });
    assert.equal(total, frames);
  }
});
