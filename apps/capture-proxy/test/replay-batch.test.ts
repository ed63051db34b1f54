import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import type { ReplayBatch, ReplayResult, TaskProgress } from "@headworks/capture-contract";
import { waitUntil } from "@headworks/testkit";
import { WebSocket } from "ws";
import { startOrigin, startReplayRig } from "./replay-rig.ts";

const cleanups: (() => unknown)[] = [];
const cleanup = (one: () => unknown): void => void cleanups.push(one);
after(async () => {
  for (const one of cleanups.reverse()) await one();
});

type Batch = ReplayBatch & { results: ReplayResult[] };

const rig = await startReplayRig(cleanup);
let present = 0;
let max = 0;
const waiting: (() => void)[] = [];
/** Blocks requests until the expected number is waiting, then lets all through. */
let gate: Gate | undefined;

class Gate {
  readonly #expected: number;
  readonly #waiting: (() => void)[] = [];

  constructor(expected: number) {
    this.#expected = expected;
  }

  come(pass: () => void): void {
    this.#waiting.push(pass);
    if (this.#waiting.length < this.#expected) return;
    gate = undefined;
    for (const one of this.#waiting) one();
  }
}

const origin = await startOrigin(cleanup, (incoming, response) => {
  present += 1;
  max = Math.max(max, present);
  response.once("close", () => {
    present -= 1;
  });
  const end = (): void => {
    response.writeHead(incoming.url?.endsWith("0") ? 503 : 200).end(incoming.url);
  };
  if (incoming.url === "/held") waiting.push(end);
  else if (gate !== undefined) gate.come(end);
  else if (incoming.url?.endsWith("7")) incoming.socket.resetAndDestroy();
  else setImmediate(end);
});

async function savedAs(url: string): Promise<string> {
  return (await rig.call<{ id: string }>("POST", "/replay/saved", { request: { url } })).json.id;
}

const batch = (id: string, body?: object, query = "") =>
  rig.call<Batch>("POST", `/replay/execute/${id}/batch${query}`, body);

async function tasks(): Promise<{ readonly seen: TaskProgress[]; readonly close: () => void }> {
  const socket = new WebSocket(`${rig.proxy.addresses.api.replace("http", "ws")}/ws`);
  const seen: TaskProgress[] = [];
  socket.on("message", (data: Buffer) => {
    const message = JSON.parse(data.toString()) as { type: string; data: TaskProgress };
    if (message.type === "Task") seen.push(message.data);
  });
  await once(socket, "open");
  socket.send(JSON.stringify({ type: "Subscribe", data: { channels: ["tasks"] } }));
  socket.send(JSON.stringify({ type: "Ping" }));
  await once(socket, "message");
  return { seen, close: () => socket.close() };
}

test("a batch sends every iteration once, with the given concurrency, and counts the outcomes", async () => {
  const id = await savedAs(`${origin}/n/{{$iteration}}`);
  max = 0;
  gate = new Gate(4);
  const live = await tasks();
  const { status, json } = await batch(id, { iterations: 40, concurrency: 4 }, "?task_id=first");
  live.close();
  assert.equal(status, 200, JSON.stringify(json));
  assert.equal(max, 4);
  assert.deepEqual([json.id, json.state, json.total, json.succeeded, json.failed], ["first", "done", 40, 36, 4]);
  assert.deepEqual(json.statuses, { 200: 32, 503: 4 });
  assert.deepEqual(
    json.errors.map(({ code, count }) => [code, count]),
    [["UPSTREAM_RESET", 4]],
  );
  assert.deepEqual(
    json.results.map(({ iteration }) => iteration),
    Array.from({ length: 40 }, (_, index) => index + 1),
  );
  assert.ok(json.results.every(({ request, iteration }) => request.url === `${origin}/n/${iteration}`));
  const durations = json.results
    .filter(({ error }) => error === null)
    .map((one) => one.duration_ms)
    .sort((a, b) => a - b);
  assert.deepEqual(
    [json.min_ms, json.p50_ms, json.p95_ms, json.max_ms],
    [durations[0], durations[17], durations[34], durations[35]],
  );
  assert.equal(
    json.histogram.reduce((sum, { count }) => sum + count, 0),
    36,
  );
  assert.deepEqual(
    [
      live.seen.at(-1)?.id,
      live.seen.at(-1)?.kind,
      live.seen.at(-1)?.done,
      live.seen.at(-1)?.entries,
      live.seen.at(-1)?.total_entries,
    ],
    ["first", "replay-batch", true, 40, 40],
  );
  // Entries are stored before the batch ends.
  const entry = await rig.call<{ request: { path: string } }>("GET", `/traffic/${json.results[10]?.entry_id}`);
  assert.equal(entry.json.request.path, "/n/11");
  assert.deepEqual((await rig.call("GET", "/replay/history")).json, []);
  const page = await rig.call<ReplayResult[]>("GET", "/replay/history?batch_id=first&limit=2&offset=38");
  assert.deepEqual([page.json.map(({ iteration }) => iteration), page.headers.get("x-total-count")], [[39, 40], "40"]);
});

test("numbers may be given in config; those beyond a limit or contradictory are rejected", async () => {
  const id = await savedAs(`${origin}/c`);
  const { json } = await batch(id, {
    config: { iterations: 3, concurrency: 2, delay_ms: 1 },
    modifications: { method: "HEAD" },
  });
  assert.deepEqual([json.iterations, json.concurrency, json.delay_ms, json.total], [3, 2, 1, 3]);
  assert.ok(json.results.every(({ request }) => request.method === "HEAD"));
  const known = Number((await rig.call("GET", "/replay/batches")).headers.get("x-total-count"));
  const alone = await batch(id);
  assert.equal(alone.json.total, 1);
  for (const body of [
    { iterations: 10_001 },
    { concurrency: 101 },
    { iterations: 0 },
    { config: { iterations: 10_001 } },
    { config: { concurrency: 0 } },
    { iterations: 1.5 },
    { iterations: 2, config: { iterations: 3 } },
    { delay_ms: -1 },
    { count: 3 },
    { modifications: { url: "nowhere" } },
  ]) {
    const { status, json: refusal } = await batch(id, body);
    assert.deepEqual(
      [status, (refusal as unknown as { code: string }).code],
      [400, "VALIDATION_ERROR"],
      JSON.stringify(body),
    );
  }
  // Rejected orders create no batch.
  assert.equal(Number((await rig.call("GET", "/replay/batches")).headers.get("x-total-count")), known + 1);
});

test("replays of one worker are separated by the delay", async () => {
  const id = await savedAs(`${origin}/d`);
  const { json } = await batch(id, { iterations: 4, concurrency: 2, delay_ms: 60 });
  const starts = json.results.map(({ executed_at }) => Date.parse(executed_at)).sort((a, b) => a - b);
  assert.ok((starts[3] ?? 0) - (starts[0] ?? 0) >= 55, starts.join());
});

test("a detached batch can be watched and cancelled; replays in flight leave no result", async () => {
  const id = await savedAs(`${origin}/held`);
  const begun = await batch(id, { iterations: 100, concurrency: 5, wait: false }, "?task_id=held");
  assert.deepEqual([begun.status, begun.json], [202, { id: "held" }]);
  await waitUntil(() => waiting.length === 5);
  for (const end of waiting.splice(0, 2)) end();
  await waitUntil(async () => (await rig.call<ReplayBatch>("GET", "/replay/batches/held")).json.total === 2);
  const again = await batch(id, {}, "?task_id=held");
  assert.equal(again.status, 409);
  const cancelled = await rig.call<ReplayBatch>("POST", "/replay/batches/held/cancel");
  assert.equal(cancelled.status, 200);
  await waitUntil(async () => (await rig.call<ReplayBatch>("GET", "/replay/batches/held")).json.state === "cancelled");
  const { json } = await rig.call<Batch>("GET", "/replay/batches/held");
  assert.deepEqual([json.total, json.results.length, json.finished_at === null], [2, 2, false]);
  await waitUntil(() => present === 0);
  assert.equal((await rig.call("POST", "/replay/batches/held/cancel")).status, 409);
  assert.equal((await rig.call("POST", "/replay/batches/none/cancel")).status, 404);
  assert.equal((await rig.call("GET", "/replay/batches/none")).status, 404);
  waiting.length = 0;
});

test("a client disconnect cancels its batch", async () => {
  const id = await savedAs(`${origin}/held`);
  const gone = new AbortController();
  const call = rig.call(
    "POST",
    `/replay/execute/${id}/batch?task_id=gone`,
    { iterations: 10, concurrency: 2 },
    gone.signal,
  );
  const failed = assert.rejects(call, { name: "AbortError" });
  await waitUntil(() => waiting.length === 2);
  gone.abort();
  await failed;
  await waitUntil(async () => (await rig.call<ReplayBatch>("GET", "/replay/batches/gone")).json.state === "cancelled");
  waiting.length = 0;
});

test("the number of running batches is limited", async () => {
  const id = await savedAs(`${origin}/held`);
  const begin = (name: string) => batch(id, { wait: false }, `?task_id=${name}`);
  for (const name of ["a", "b", "c", "d"]) assert.equal((await begin(name)).status, 202);
  assert.equal((await batch(id, { wait: false })).status, 409);
  for (const name of ["a", "b", "c", "d"]) await rig.call("POST", `/replay/batches/${name}/cancel`);
  await waitUntil(async () => (await rig.call<ReplayBatch>("GET", "/replay/batches/d")).json.state === "cancelled");
  assert.equal((await batch(await savedAs(`${origin}/ok`))).status, 200);
  waiting.length = 0;
});

test("a batch interrupted by shutdown keeps its results", async () => {
  const id = await savedAs(`${origin}/held`);
  await batch(id, { iterations: 50, concurrency: 3, wait: false }, "?task_id=cut");
  await waitUntil(() => waiting.length === 3);
  for (const end of waiting.splice(0)) end();
  await waitUntil(() => waiting.length === 3);
  await rig.restart();
  const { json } = await rig.call<Batch>("GET", "/replay/batches/cut");
  assert.deepEqual([json.state, json.total, json.results.length], ["interrupted", 3, 3]);
  const list = await rig.call<ReplayBatch[]>("GET", "/replay/batches?limit=1");
  assert.deepEqual([list.json.map((one) => one.id), Number(list.headers.get("x-total-count")) > 5], [["cut"], true]);
});
