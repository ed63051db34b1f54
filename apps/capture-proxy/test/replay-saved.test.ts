import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import type { ReplayResult, SavedRequest } from "@headworks/capture-contract";
import { bytesOf, replay, startOrigin, startReplayRig } from "./replay-rig.ts";

const cleanups: (() => unknown)[] = [];
const cleanup = (one: () => unknown): void => void cleanups.push(one);
after(async () => {
  for (const one of cleanups.reverse()) await one();
});

const rig = await startReplayRig(cleanup, { "max-body-size": "1000" });
const echo = await startOrigin(cleanup, async (incoming, response) => {
  const body = await bytesOf(incoming);
  response.end(`${incoming.method} ${incoming.url} ${body.length}`);
});

const save = (body: object) => rig.call<{ id: string; code: string; error: string }>("POST", "/replay/saved", body);
const saved = async (id: string): Promise<SavedRequest> =>
  (await rig.call<SavedRequest>("GET", `/replay/saved/${id}`)).json;

test("a request is saved from an entry, complete and with its source, by either name of the field", async () => {
  const bytes = Buffer.from([0, 1, 254, 255]);
  const entry = await rig.capture(`${echo}/s?q`, { method: "POST", headers: { "X-A": ["1", "2"] }, body: bytes });
  for (const field of ["entry_id", "traffic_id"]) {
    const { status, json } = await save({ [field]: entry, name: "Mine", tags: ["t"], collection: "C" });
    assert.equal(status, 201);
    const kept = await saved(json.id);
    assert.deepEqual(
      [kept.source_entry_id, kept.name, kept.tags, kept.collection, kept.request.method, kept.request.url],
      [entry, "Mine", ["t"], "C", "POST", `${echo}/s?q`],
    );
    assert.equal(kept.request.body, `base64:${bytes.toString("base64")}`);
    const twice = kept.request.headers_list.filter(([name]) => name === "X-A").map(([, value]) => value);
    assert.deepEqual(twice, ["1", "2"]);
  }
});

test("PUT accepts the body of GET and only changes the update time", async () => {
  const entry = await rig.capture(`${echo}/put`, { method: "POST", headers: { "X-A": ["1", "2"] }, body: "b" });
  const { id } = (await save({ entry_id: entry, name: "n" })).json;
  const before = await saved(id);
  const put = await rig.call<SavedRequest>("PUT", `/replay/saved/${id}`, before);
  assert.equal(put.status, 200, JSON.stringify(put.json));
  assert.deepEqual({ ...put.json, updated_at: before.updated_at }, before);
  const { headers_list: _list, ...request } = before.request;
  const changed = await rig.call<SavedRequest>("PUT", `/replay/saved/${id}`, {
    request: { ...request, headers: { "X-B": "ü中" }, url: `${echo}/other`, body: null },
  });
  assert.deepEqual(
    [changed.json.name, changed.json.request.url, changed.json.request.body, changed.json.request.host],
    [null, `${echo}/other`, null, "127.0.0.1"],
  );
  assert.equal((await replay(rig, id)).response?.body, "POST /other 0");
});

test("lists are newest first, filtered, counted and without bodies", async () => {
  const ids: string[] = [];
  for (const [name, tags] of [
    ["Alpha", ["x"]],
    ["beta", ["x", "y"]],
    ["Gamma", []],
  ] as const) {
    ids.push((await save({ request: { url: `${echo}/${name}`, body: "b" }, name, tags, collection: "L" })).json.id);
  }
  const list = async (query: string) => {
    const { json, headers } = await rig.call<SavedRequest[]>("GET", `/replay/saved?collection=L&${query}`);
    return {
      names: json.map(({ name }) => name),
      bodies: json.map(({ request }) => request.body),
      total: headers.get("x-total-count"),
    };
  };
  assert.deepEqual(await list(""), { names: ["Gamma", "beta", "Alpha"], bodies: [null, null, null], total: "3" });
  assert.deepEqual((await list("include_bodies=true&limit=1&offset=1")).bodies, ["b"]);
  assert.deepEqual((await list("tag=y")).names, ["beta"]);
  assert.deepEqual((await list("search=ALPH")).names, ["Alpha"]);
  assert.deepEqual((await list("search=%25")).names, []);
  const { json } = await rig.call<{ name: string; count: number }[]>("GET", "/replay/collections");
  assert.deepEqual(
    json.find(({ name }) => name === "L"),
    { name: "L", count: 3 },
  );
  assert.equal((await rig.call("DELETE", `/replay/saved/${ids[0]}`)).status, 204);
  assert.equal((await rig.call("DELETE", `/replay/saved/${ids[0]}`)).status, 404);
  assert.equal((await rig.call("GET", `/replay/saved/${ids[0]}`)).status, 404);
  assert.equal((await rig.call("PUT", `/replay/saved/${ids[0]}`, { request: { url: echo } })).status, 404);
});

test("several entries are saved at once, and failures are named", async () => {
  const good = await rig.capture(`${echo}/many`);
  const long = await rig.capture(`${echo}/long`, { method: "POST", body: "x".repeat(2000) });
  const { status, json } = await rig.call<{ saved: number; ids: string[]; errors: string[]; total: number }>(
    "POST",
    "/replay/saved/from-traffic",
    { entry_ids: [good, long, "missing"], name_prefix: "From " },
  );
  assert.equal(status, 201);
  assert.deepEqual(
    [json.saved, json.total, json.errors],
    [
      1,
      3,
      [
        `entry ${long}: Only the first 1000 of 2000 bytes of the request's body were stored`,
        "entry missing: Entry not found",
      ],
    ],
  );
  assert.equal((await saved(json.ids[0] ?? "")).name, `From GET ${echo}/many`);
  const none = await rig.call("POST", "/replay/saved/from-traffic", { entry_ids: ["missing"] });
  assert.equal(none.status, 404);
});

test("entries that cannot be replayed are rejected with a reason", async () => {
  const long = await rig.capture(`${echo}/cut`, { method: "POST", body: "x".repeat(2000) });
  assert.equal((await save({ entry_id: long })).status, 409);
  assert.equal((await rig.call("POST", `/replay/execute/${long}`)).status, 409);
  const tunnel = createServer();
  tunnel.listen(0);
  cleanup(() => tunnel.close());
  const refused: readonly [object, string][] = [
    [{}, "body/request"],
    [{ request: { url: "nowhere" } }, "body/request/url"],
    [{ request: {} }, "body/request/url"],
    [{ request: { url: "http://x/", headers: { "a b": "c" } } }, "body/request/headers"],
    [{ request: { url: "http://x/", headers_list: [["a"]] } }, "body/request/headers_list/0"],
    [{ request: { url: "http://x/", headers_list: [["a", "b\nc"]] } }, "body/request/headers_list"],
    [{ request: { url: "http://x/", body: "base64:~" } }, "body/request/body"],
    [{ request: { url: "http://x/", method: "" } }, "body/request/method"],
    [{ request: { url: "http://x/", extra: 1 } }, "body/request/extra"],
    [{ request: { url: "http://x/" }, name: " " }, "body/name"],
  ];
  for (const [body, path] of refused) {
    const { status, json } = await save(body);
    assert.deepEqual([status, json.code], [400, "VALIDATION_ERROR"], JSON.stringify(body));
    assert.ok(json.error.includes(path), json.error);
  }
  assert.equal((await save({ entry_id: "missing" })).status, 404);
});

test("saved requests and the history survive a restart", async () => {
  const { id } = (await save({ request: { url: `${echo}/again`, method: "POST", body: "xyz" }, tags: ["keep"] })).json;
  const result = await replay(rig, id);
  const before = await saved(id);
  await rig.restart();
  assert.deepEqual(await saved(id), before);
  const history = await rig.call<ReplayResult[]>("GET", `/replay/history?saved_request_id=${id}`);
  assert.deepEqual(
    history.json.map((one) => one.id),
    [result.id],
  );
  assert.equal(history.json[0]?.response?.body, null);
  const whole = await rig.call<ReplayResult>("GET", `/replay/history/${result.id}`);
  assert.equal(whole.json.response?.body, "POST /again 3");
  assert.equal((await replay(rig, id)).response?.body, "POST /again 3");
  assert.equal((await rig.call("DELETE", "/replay/history")).status, 204);
  assert.deepEqual((await rig.call("GET", "/replay/history")).json, []);
  assert.equal((await rig.call("GET", `/replay/history/${result.id}`)).status, 404);
  assert.equal((await rig.call("GET", `/traffic/${result.entry_id}`)).status, 200);
});
