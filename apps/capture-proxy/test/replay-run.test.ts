import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { after, test } from "node:test";
import type { ReplayResult, TrafficEntry } from "@headworks/capture-contract";
import { bytesOf, replay, startOrigin, startReplayRig } from "./replay-rig.ts";

const cleanups: (() => unknown)[] = [];
const cleanup = (one: () => unknown): void => void cleanups.push(one);
after(async () => {
  for (const one of cleanups.reverse()) await one();
});

interface Echo {
  readonly method: string;
  readonly url: string;
  readonly headers: [string, string][];
  readonly body: string;
}

const rig = await startReplayRig(cleanup);
const echo = await startOrigin(cleanup, async (incoming, response) => {
  const raw = incoming.rawHeaders;
  const headers = raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1]]] : []));
  const body = (await bytesOf(incoming)).toString("latin1");
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ method: incoming.method, url: incoming.url, headers, body }));
});

const echoOf = (result: ReplayResult): Echo => JSON.parse(result.response?.body ?? "null") as Echo;
const headerOf = (seen: Echo, name: string): string[] =>
  seen.headers.filter(([known]) => known.toLowerCase() === name).map(([, value]) => value);

test("a captured entry is replayed unchanged, and the replay has its own entry", async () => {
  const id = await rig.capture(`${echo}/items?x=1`, {
    method: "POST",
    headers: { "X-Twice": ["a", "b"], "content-type": "text/plain" },
    body: "höllo",
  });
  const result = await replay(rig, id);
  const seen = echoOf(result);
  assert.deepEqual(
    [seen.method, seen.url, Buffer.from(seen.body, "latin1").toString()],
    ["POST", "/items?x=1", "höllo"],
  );
  assert.deepEqual(headerOf(seen, "x-twice"), ["a", "b"]);
  assert.deepEqual([result.source_entry_id, result.saved_request_id, result.error], [id, null, null]);
  assert.equal(result.request.body, "höllo");
  assert.notEqual(result.entry_id, id);
  const { json } = await rig.call<TrafficEntry>("GET", `/traffic/${result.entry_id}`);
  assert.equal(json.request.url, `${echo}/items?x=1`);
  assert.equal(json.request.body, "höllo");
  assert.equal(json.response?.body, result.response?.body);
  assert.deepEqual([json.client_addr, json.connection_id], [null, null]);
  const { json: list } = await rig.call<{ readonly id: string; readonly client_addr: string | null }[]>(
    "GET",
    "/traffic",
  );
  assert.equal(list.find((entry) => entry.id === result.entry_id)?.client_addr, null);
  const { json: har } = await rig.call<{ readonly log: { readonly entries: readonly object[] } }>(
    "GET",
    `/export/har?ids=${result.entry_id ?? ""}`,
  );
  assert.deepEqual(
    har.log.entries.map((entry) => "connection" in entry),
    [false],
  );
});

test("modifications replace URL, method, fields and body of the sent request only", async () => {
  const id = await rig.capture(`${echo}/a`, { method: "PUT", headers: { "X-Old": "1", "X-Keep": "2" }, body: "old" });
  const modifications = {
    url: `${echo.replace("127.0.0.1", "localhost")}/b?c#d`,
    method: "PATCH",
    headers: { "x-keep": "3", "X-New": "4" },
    remove_headers: ["X-OLD"],
    body: `base64:${Buffer.from([0, 255]).toString("base64")}`,
  };
  const result = await replay(rig, id, { modifications });
  const seen = echoOf(result);
  assert.deepEqual([seen.method, seen.url, seen.body], ["PATCH", "/b?c", "\0ÿ"]);
  assert.deepEqual(
    ["x-old", "x-keep", "x-new", "content-length", "host"].map((name) => headerOf(seen, name)),
    [[], ["3"], ["4"], ["2"], [new URL(modifications.url).host]],
  );
  const named = await replay(rig, id, { modifications: { url: `${echo}/c`, headers: { Host: "other.example" } } });
  assert.deepEqual(headerOf(echoOf(named), "host"), ["other.example"]);
  const emptied = echoOf(await replay(rig, id, { modifications: { body: "" } }));
  assert.deepEqual([emptied.body, headerOf(emptied, "content-length")], ["", ["0"]]);
});

test("a compressed body is sent compressed, and a new one without a content coding", async () => {
  const id = await rig.capture(`${echo}/z`, {
    method: "POST",
    headers: { "content-encoding": "gzip" },
    body: gzipSync("packed"),
  });
  const seen = echoOf(await replay(rig, id));
  assert.equal(Buffer.from(seen.body, "latin1").compare(gzipSync("packed")), 0);
  const changed = echoOf(await replay(rig, id, { modifications: { body: "plain" } }));
  assert.deepEqual([changed.body, headerOf(changed, "content-encoding")], ["plain", []]);
});

test("a chunked request is replayed chunked", async () => {
  const id = await rig.capture(`${echo}/c`, {
    method: "POST",
    headers: { "transfer-encoding": "chunked" },
    body: "pieces",
  });
  const seen = echoOf(await replay(rig, id));
  assert.deepEqual(
    [seen.body, headerOf(seen, "transfer-encoding"), headerOf(seen, "content-length")],
    ["pieces", ["chunked"], []],
  );
});

test("variables fill URL, fields and body; unknown ones stay, except in the URL's authority", async () => {
  const { json } = await rig.call<{ id: string }>("POST", "/replay/saved", {
    request: {
      method: "POST",
      url: `{{base}}/users/{{ user }}`,
      headers: { "X-Token": "t-{{token}}", "X-Open": "{{unknown}}", "X-Id": "{{$uuid}}" },
      body: '{"user":"{{user}}","n":{{$iteration}}}',
    },
  });
  const variables = { base: echo, user: "jö", token: "s3" };
  const seen = echoOf(await replay(rig, json.id, { variables }));
  assert.equal(seen.url, "/users/j%C3%B6");
  assert.equal(Buffer.from(seen.body, "latin1").toString(), '{"user":"jö","n":1}');
  assert.deepEqual([headerOf(seen, "x-token"), headerOf(seen, "x-open")], [["t-s3"], ["{{unknown}}"]]);
  // No Connection field is added: the connection may persist.
  assert.deepEqual(headerOf(seen, "connection"), []);
  assert.match(headerOf(seen, "x-id")[0] ?? "", /^[\da-f-]{36}$/u);
  const nowhere = await rig.call("POST", `/replay/execute/${json.id}`, { variables: { user: "x" } });
  assert.equal(nowhere.status, 400);
  assert.match((nowhere.json as { error: string }).error, /variable base/u);
  const split = await rig.call("POST", `/replay/execute/${json.id}`, {
    variables: { ...variables, token: "a\r\nEvil: 1" },
  });
  assert.equal(split.status, 400);
});

test("redirects are followed on request, up to a limit, and credentials stay with their origin", async () => {
  const other = await startOrigin(cleanup, (incoming, response) => {
    response.end(
      JSON.stringify({
        method: incoming.method,
        url: incoming.url,
        headers: Object.entries(incoming.headers),
        body: "",
      }),
    );
  });
  const first = await startOrigin(cleanup, (incoming, response) => {
    const to: Record<string, [number, string]> = {
      "/start": [302, "/next"],
      "/next": [307, `${other}/end`],
      "/post": [303, `${other}/got`],
      "/keep": [308, "/kept"],
      "/loop": [302, "/loop"],
      "/mail": [302, "mailto:a@b"],
    };
    const [status, location] = to[incoming.url ?? ""] ?? [200, ""];
    response.writeHead(status, location === "" ? {} : { location }).end(incoming.method);
  });
  const saved = async (path: string, method = "GET"): Promise<string> => {
    const request = {
      url: first + path,
      method,
      headers: { Authorization: "Bearer x", "X-Mine": "1", "Content-Type": "a/b" },
    };
    return (await rig.call<{ id: string }>("POST", "/replay/saved", { request })).json.id;
  };
  const id = await saved("/start");
  assert.equal((await replay(rig, id)).response?.status_code, 302);
  const result = await replay(rig, id, { modifications: { follow_redirects: true } });
  assert.deepEqual(
    result.redirects.map(({ status_code, url }) => [status_code, url]),
    [
      [302, `${first}/start`],
      [307, `${first}/next`],
    ],
  );
  assert.ok(result.redirects.every(({ entry_id }) => entry_id !== null));
  const seen = echoOf(result);
  assert.deepEqual([seen.url, headerOf(seen, "authorization"), headerOf(seen, "x-mine")], ["/end", [], ["1"]]);
  const got = echoOf(await replay(rig, await saved("/post", "POST"), { modifications: { follow_redirects: true } }));
  assert.deepEqual([got.method, got.url, headerOf(got, "content-type")], ["GET", "/got", []]);
  const kept = await replay(rig, await saved("/keep", "DELETE"), { modifications: { follow_redirects: true } });
  assert.equal(kept.response?.body, "DELETE");
  const named = await replay(rig, id, {
    modifications: { follow_redirects: true, headers: { Host: "other.example" } },
  });
  assert.deepEqual([named.redirects.length, named.response?.status_code], [2, 200]);
  const loop = await replay(rig, await saved("/loop"), { modifications: { follow_redirects: true, max_redirects: 3 } });
  assert.deepEqual([loop.redirects.length, loop.response?.status_code], [3, 302]);
  assert.equal(
    (await replay(rig, await saved("/mail"), { modifications: { follow_redirects: true } })).redirects.length,
    0,
  );
});

test("a failed replay has a reason and is in the history with its entry", async () => {
  const { json } = await rig.call<{ id: string }>("POST", "/replay/saved", {
    request: { url: "http://127.0.0.1:1/x" },
  });
  const result = await replay(rig, json.id);
  assert.equal(result.response, null);
  assert.equal(result.error_code, "UPSTREAM_REFUSED");
  assert.match(result.error ?? "", /refused/u);
  const kept = await rig.call<ReplayResult>("GET", `/replay/history/${result.id}`);
  assert.deepEqual(kept.json, { ...result, request: { ...result.request, body: null, body_encoding: null } });
  const entry = await rig.call<TrafficEntry>("GET", `/traffic/${result.entry_id}`);
  assert.equal(entry.json.failure?.code, "UPSTREAM_REFUSED");
});

test("rules apply to replays, and are not captured while capturing is off", async () => {
  const id = await rig.capture(`${echo}/blocked`);
  const block = await rig.call<{ id: string }>("POST", "/blocklist", { pattern: "127.0.0.1", status_code: 451 });
  const blocked = await replay(rig, id);
  assert.equal(blocked.response?.status_code, 451);
  await rig.call("DELETE", `/blocklist/${block.json.id}`);
  await rig.call("POST", "/capture/toggle", { enabled: false });
  const unseen = await replay(rig, id);
  await rig.call("POST", "/capture/toggle", { enabled: true });
  assert.deepEqual([unseen.entry_id, unseen.response?.status_code], [null, 200]);
  assert.equal(echoOf(unseen).url, "/blocked");
});

test("a compressed response is shown encoded, or decoded on request", async () => {
  const packed = gzipSync("unpacked");
  const bomb = gzipSync(Buffer.alloc(8_000_000));
  const coded = await startOrigin(cleanup, (incoming, response) => {
    response.writeHead(200, { "content-encoding": "gzip" }).end(incoming.url === "/bomb" ? bomb : packed);
  });
  const id = await rig.capture(`${coded}/`);
  const result = await replay(rig, id);
  assert.equal(result.response?.body, `base64:${packed.toString("base64")}`);
  const plain = async (path: string, method = "GET"): Promise<string | null | undefined> =>
    (await rig.call<ReplayResult>(method, `${path}?decompressed=true`)).json.response?.body;
  assert.equal(await plain(`/replay/execute/${id}`, "POST"), "unpacked");
  assert.equal(await plain(`/replay/history/${result.id}`), "unpacked");
  const large = await plain(`/replay/execute/${await rig.capture(`${coded}/bomb`)}`, "POST");
  assert.equal(large, `base64:${bomb.toString("base64")}`);
});

test("a large response is cut in the result and complete in the entry", async () => {
  const size = 3_000_000;
  const large = await startOrigin(cleanup, (_incoming, response) => void response.end("x".repeat(size)));
  const id = await rig.capture(`${large}/`);
  const result = await replay(rig, id);
  assert.deepEqual(
    [
      result.response?.body?.length,
      result.response?.body_size,
      result.response?.body_state,
      result.response?.truncated,
    ],
    [1_048_576, size, "truncated", true],
  );
  const again = await rig.call<ReplayResult>("GET", `/replay/history/${result.id}`);
  assert.equal(again.json.response?.body?.length, size);
});

test("an unknown id is 404, and an invalid order is rejected", async () => {
  const missing = "00000000-0000-4000-8000-000000000000";
  for (const path of [`/replay/execute/${missing}`, `/replay/execute/${missing}/batch`]) {
    const { status, json } = await rig.call("POST", path, {});
    assert.equal(status, 404);
    assert.equal((json as { code: string }).code, "NOT_FOUND");
  }
  const id = await rig.capture(`${echo}/v`);
  const bad = [
    { modifications: { url: "ftp://x/" } },
    { modifications: { url: "http://user:pass@x/" } },
    { modifications: { url: "/relative" } },
    { modifications: { url: "http://host:99999/" } },
    { modifications: { method: "G T" } },
    { modifications: { headers: { "a b": "c" } } },
    { modifications: { headers: { a: "b\r\nc: d" } } },
    { modifications: { body: "base64:***" } },
    { modifications: { max_redirects: 21 } },
    { modification: {} },
    { variables: { "no name": "x" } },
  ];
  for (const order of bad) {
    const { status, json } = await rig.call("POST", `/replay/execute/${id}`, order);
    assert.deepEqual([status, (json as { code: string }).code], [400, "VALIDATION_ERROR"], JSON.stringify(order));
  }
});
