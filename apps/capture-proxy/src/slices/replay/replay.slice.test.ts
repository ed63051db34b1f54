// Also tests replay-history.ts, saved-request.ts and saved-requests.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplayResult, replayOperations, SavedRequest } from "@headworks/capture-contract";
import { openDatabase, STATE_MIGRATIONS } from "#storage/database.ts";
import type { Slice } from "#slice.ts";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { summarize } from "./batch-summary.ts";
import { createHistoryStore } from "./replay-history.ts";
import type { StoredBatch } from "./replay-history.ts";
import { createReplaySlice } from "./replay.slice.ts";

async function startReplay(): Promise<{ api: ApiRig; slice: Slice<typeof replayOperations> }> {
  let slice: Slice<typeof replayOperations> | undefined;
  const api = await startApi({ slices: (host) => [(slice = createReplaySlice(host))] });
  assert.ok(slice);
  return { api, slice };
}

const requests = [
  {
    request: {
      url: "http://a.example/",
      headers_list: [
        ["A", "1"],
        ["a", "2"],
      ],
    },
    name: "one",
    tags: ["x"],
  },
  { request: { url: "https://b.example/{{v}}", method: "POST", body: "base64:AP8=" }, collection: "C" },
];

async function create(api: ApiRig): Promise<void> {
  for (const body of requests) {
    await api.clock.advance(10);
    assert.equal((await api.call("POST", "/api/replay/saved", body)).status, 201);
  }
}

test("saved requests export and import unchanged, in the same order", async () => {
  const { api: from, slice: source } = await startReplay();
  await using first = from;
  await create(first);
  const rules = source.portableRules;
  assert.ok(rules);
  const bundle = JSON.parse(JSON.stringify(rules.exportRules())) as SavedRequest[];
  const { api: to, slice: target } = await startReplay();
  await using second = to;
  const order = { mode: "replace", version: 1 } as const;
  const tried = target.portableRules?.importRules(bundle, { ...order, dryRun: true });
  assert.deepEqual(tried, { counts: { added: 2, updated: 0, removed: 0, unchanged: 0 } });
  assert.deepEqual((await second.call("GET", "/api/replay/saved")).json, []);
  target.portableRules?.importRules(bundle, { ...order, dryRun: false });
  target.portableRules?.reload();
  const listed = async (api: ApiRig): Promise<unknown> =>
    (await api.call("GET", "/api/replay/saved?include_bodies=true")).json;
  assert.deepEqual(await listed(second), await listed(first));
  assert.deepEqual(target.portableRules?.exportRules(), bundle);
  assert.deepEqual(target.portableRules?.importRules(bundle, { mode: "merge", version: 1, dryRun: false }), {
    counts: { added: 0, updated: 0, removed: 0, unchanged: 2 },
  });
  const bad = bundle.with(1, {
    ...(bundle[1] as SavedRequest),
    request: { ...(bundle[1] as SavedRequest).request, url: "nowhere" },
  });
  const refused = target.portableRules?.importRules(bad, { ...order, dryRun: false });
  assert.deepEqual(refused && "issues" in refused ? refused.issues.map(({ path }) => path) : [], ["/1/request/url"]);
  assert.deepEqual(target.portableRules?.exportRules(), bundle);
});

test("every change of a saved request is announced", async () => {
  const { api: started } = await startReplay();
  await using api = started;
  const told: string[] = [];
  const { events } = api.host;
  const changed = events.changed.bind(events);
  events.changed = (topic) => {
    told.push(topic);
    changed(topic);
  };
  await create(api);
  const [newest] = (await api.call("GET", "/api/replay/saved")).json as SavedRequest[];
  await api.call("PUT", `/api/replay/saved/${newest?.id}`, newest);
  await api.call("DELETE", `/api/replay/saved/${newest?.id}`);
  assert.deepEqual(told, ["replay", "replay", "replay", "replay"]);
});

function result(id: string, batchId: string | null = null, iteration: number | null = null): ReplayResult {
  return { id, batch_id: batchId, iteration, saved_request_id: "s" } as ReplayResult;
}

const batch = (id: string, iterations: number): StoredBatch => ({
  id,
  savedRequestId: null,
  sourceEntryId: null,
  state: "running",
  iterations,
  concurrency: 1,
  delayMs: null,
  summary: undefined,
  startedAtMs: 1,
  finishedAtMs: null,
});

const SINGLES = { batchId: undefined, savedRequestId: undefined };

test("the history drops the oldest beyond its bounds, single replays and batches separately", () => {
  const database = openDatabase(":memory:", { migrations: STATE_MIGRATIONS });
  const history = createHistoryStore(database, { singles: 3, batches: 2, batchResults: 10 });
  for (let index = 0; index < 5; index += 1) history.add([result(`r${index}`)]);
  assert.deepEqual(
    history.list(SINGLES, 10, 0).results.map(({ id }) => id),
    ["r4", "r3", "r2"],
  );
  for (const id of ["a", "b"]) {
    assert.equal(history.begin(batch(id, 4)), true);
    history.add(Array.from({ length: 4 }, (_, index) => result(`${id}${index}`, id, 4 - index)));
    history.end(id, "done", summarize([]), 2);
  }
  assert.deepEqual(
    history.list({ ...SINGLES, batchId: "a" }, 2, 1).results.map(({ iteration }) => iteration),
    [2, 3],
  );
  assert.equal(history.begin(batch("b", 1)), false);
  // Two batches are kept, with at most ten results including those of the new batch.
  assert.equal(history.begin(batch("c", 6)), true);
  assert.deepEqual(
    history.batches(10, 0).batches.map(({ id }) => id),
    ["c", "b"],
  );
  assert.equal(history.list({ ...SINGLES, batchId: "a" }, 10, 0).total, 0);
  // Running batches are never dropped.
  assert.equal(history.begin(batch("d", 10)), true);
  assert.deepEqual(
    history.batches(10, 0).batches.map(({ id }) => id),
    ["d", "c"],
  );
  history.clear();
  assert.deepEqual([history.batches(10, 0).total, history.list(SINGLES, 10, 0).total], [2, 0]);
  assert.deepEqual(
    history.unfinished().map(({ id }) => id),
    ["c", "d"],
  );
  database.close();
});

test("an unfinished batch is closed at the next start with the results it has", async () => {
  const { api: started } = await startReplay();
  await using api = started;
  const history = createHistoryStore(api.database, { singles: 3, batches: 2, batchResults: 10 });
  history.begin(batch("left", 5));
  const done = { ...result("x", "left", 1), duration_ms: 4, response: null, error: "gone", error_code: "E" };
  history.add([done]);
  createReplaySlice(api.host);
  const left = history.batch("left");
  assert.deepEqual(
    [left?.state, left?.summary?.total, left?.summary?.errors],
    ["interrupted", 1, [{ code: "E", message: "gone", count: 1 }]],
  );
});
