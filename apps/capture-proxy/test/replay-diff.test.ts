import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { after, test } from "node:test";
import type { EntryDiff, ReplayResult } from "@headworks/capture-contract";
import { bytesOf, replay, startOrigin, startReplayRig } from "./replay-rig.ts";

const cleanups: (() => unknown)[] = [];
const cleanup = (one: () => unknown): void => void cleanups.push(one);
after(async () => {
  for (const one of cleanups.reverse()) await one();
});

const rig = await startReplayRig(cleanup);
/** The origin's responses by path; a second request of a path may get another one. */
const responses = new Map<string, { status?: number; headers?: Record<string, string>; body: string | Buffer }[]>();
const origin = await startOrigin(cleanup, async (incoming, response) => {
  await bytesOf(incoming);
  const queue = responses.get(incoming.url ?? "") ?? [{ body: "" }];
  const next = queue.length > 1 ? queue.shift() : queue[0];
  response.writeHead(next?.status ?? 200, next?.headers ?? { "content-type": "application/json" }).end(next?.body);
});

const diff = (order: object) => rig.call<EntryDiff & { error: string }>("POST", "/replay/diff", order);

test("a replay is compared with its original: ignored differences are reported and do not count", async () => {
  responses.set("/same", [
    { body: '{"id":1,"at":"x"}', headers: { "content-type": "application/json", "x-request-id": "1" } },
    { body: '{"at":"y", "id":1.0}', headers: { "content-type": "application/json", "x-request-id": "2" } },
  ]);
  const id = await rig.capture(`${origin}/same`);
  const result = await replay(rig, id, { diff: { ignore_paths: ["$.at"] } });
  assert.ok(result.diff);
  assert.deepEqual([result.diff.response_same, result.diff.response_body.ignored_changes], [true, 1]);
  assert.deepEqual(result.diff.response_headers.changed, []);
  assert.ok(result.diff.response_headers.ignored.some(({ name }) => name.toLowerCase() === "x-request-id"));
  assert.deepEqual([result.diff.left_id, result.diff.right_id], [id, result.entry_id]);
  assert.equal(result.diff.request_same, true, JSON.stringify(result.diff));
  const strict = await diff({ right: result.id, ignore_headers: [] });
  assert.equal(strict.status, 200);
  assert.deepEqual(strict.json.response_body.changes, [{ path: "/at", op: "replace", left: "x", right: "y" }]);
  assert.ok(strict.json.response_headers.changed.some(({ name }) => name.toLowerCase() === "x-request-id"));
});

test("status, field and body differences are reported, separately for request and response", async () => {
  responses.set("/other", [
    { body: "a\nb\nc", headers: { "x-v": "1" } },
    { status: 500, body: "a\nB\nc", headers: { "x-v": "2" } },
  ]);
  const id = await rig.capture(`${origin}/other`);
  const { diff: found } = await replay(rig, id, { modifications: { headers: { "X-Mine": "1" } }, diff: true });
  assert.ok(found);
  assert.deepEqual([found.same, found.request_same, found.response_same], [false, false, false]);
  assert.deepEqual(found.status, { left: "200", right: "500" });
  assert.deepEqual(found.request_headers.changed, [{ name: "X-Mine", left: null, right: ["1"] }]);
  assert.deepEqual(found.response_headers.changed, [{ name: "x-v", left: ["1"], right: ["2"] }]);
  assert.deepEqual(
    found.response_body.parts?.map(({ kind, lines }) => [kind, lines]),
    [
      ["same", ["a"]],
      ["removed", ["b"]],
      ["added", ["B"]],
      ["same", ["c"]],
    ],
  );
});

test("bodies are compared without their content coding, bytes by their hash", async () => {
  const json = { "content-type": "application/json" };
  responses.set("/coded", [
    { body: gzipSync('{"n":12345678901234567890}'), headers: { ...json, "content-encoding": "gzip" } },
    { body: '{"n":12345678901234567891}', headers: json },
  ]);
  responses.set("/bytes", [
    { body: Buffer.from([0, 255, 1]), headers: {} },
    { body: Buffer.from([0, 255, 2]), headers: {} },
  ]);
  const coded = await rig.capture(`${origin}/coded`);
  const again = await replay(rig, coded);
  const response = await fetch(`${rig.proxy.addresses.api}/api/replay/diff`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ left: coded, right: again.id }),
  });
  assert.match(await response.text(), /"left":12345678901234567890,"right":12345678901234567891/u);
  const bytes = await rig.capture(`${origin}/bytes`);
  const found = (await replay(rig, bytes, { diff: true })).diff?.response_body;
  assert.equal(found?.kind, "binary");
  assert.match(found?.left_sha256 ?? "", /^[\da-f]{64}$/u);
  assert.notEqual(found?.left_sha256, found?.right_sha256);
});

test("large bodies are compared in a thread, without numbers losing digits; huge ones by hash", async () => {
  const rows = (salt: number): string =>
    JSON.stringify(Array.from({ length: 20_000 }, (_, index) => ({ id: index, v: index === 7000 ? salt : 0 })));
  const long = rows(1).replace('"v":1}', '"v":12345678901234567890}');
  responses.set("/rows", [{ body: rows(2) }, { body: long }]);
  responses.set("/huge", [{ body: "a".repeat(5_000_000) }, { body: "b".repeat(5_000_000) }]);
  const id = await rig.capture(`${origin}/rows`);
  const { diff: found } = await replay(rig, id, { diff: true });
  assert.deepEqual(
    found?.response_body.changes?.map(({ path, left }) => [path, left]),
    [["/7000/v", 2]],
  );
  const huge = (await replay(rig, await rig.capture(`${origin}/huge`), { diff: true })).diff?.response_body;
  assert.deepEqual([huge?.kind, huge?.left_size], ["binary", 5_000_000]);
});

test("unrelated texts are compared in bounded time", async () => {
  const lines = (salt: string): string => Array.from({ length: 60_000 }, (_, index) => `${salt}${index}`).join("\n");
  responses.set("/lines", [
    { body: lines("a"), headers: { "content-type": "text/plain" } },
    { body: lines("b"), headers: { "content-type": "text/plain" } },
  ]);
  const found = (await replay(rig, await rig.capture(`${origin}/lines`), { diff: true })).diff?.response_body;
  assert.deepEqual([found?.kind, found?.parts?.[0]?.line_count], ["text", 60_000]);
});

test("a failure is a difference, and entries without captured bodies are compared by their known parts", async () => {
  responses.set("/fail", [{ body: "fine" }]);
  const id = await rig.capture(`${origin}/fail`);
  const { diff: failed } = await replay(rig, id, { modifications: { url: "http://127.0.0.1:1/fail" }, diff: true });
  assert.deepEqual(
    [failed?.failure, failed?.status],
    [
      { left: null, right: "UPSTREAM_REFUSED" },
      { left: "200", right: null },
    ],
  );
  await rig.call("POST", "/capture/toggle", { enabled: false });
  const unseen = await replay(rig, id, { diff: true });
  await rig.call("POST", "/capture/toggle", { enabled: true });
  assert.deepEqual([unseen.entry_id, unseen.diff?.response_body.kind], [null, "same"]);
  const later = await diff({ left: id, right: unseen.id });
  assert.equal(later.json.response_body.kind, "incomparable");
});

test("impossible comparisons are rejected: unknown ids, no original, invalid paths", async () => {
  const id = await rig.capture(`${origin}/refused`);
  for (const order of [
    { left: "none", right: id },
    { left: id, right: "none" },
  ]) {
    assert.equal((await diff(order)).status, 404);
  }
  assert.equal((await diff({ right: id })).status, 409);
  const bad = await diff({ left: id, right: id, ignore_paths: ["$.a", "a.b"] });
  assert.equal(bad.status, 400);
  assert.match(bad.json.error, /body\/ignore_paths\/1/u);
  const { json } = await rig.call<{ id: string }>("POST", "/replay/saved", { request: { url: `${origin}/x` } });
  const before = await rig.call<ReplayResult[]>("GET", "/replay/history");
  assert.equal((await rig.call("POST", `/replay/execute/${json.id}`, { diff: true })).status, 409);
  assert.equal((await rig.call("POST", `/replay/execute/${id}`, { diff: { ignore_paths: ["x"] } })).status, 400);
  const after = await rig.call<ReplayResult[]>("GET", "/replay/history");
  assert.equal(after.json.length, before.json.length);
  assert.equal((await diff({ left: id, right: id })).json.same, true);
});
