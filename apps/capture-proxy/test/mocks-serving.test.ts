import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { gzipSync } from "node:zlib";
import { waitUntil } from "@headworks/testkit";
import type { MockMiss, MockServing } from "@headworks/capture-contract";
import { startMocksRig } from "./mocks-rig.ts";
import type { MocksRig } from "./mocks-rig.ts";

let rig: MocksRig;
let count = 0;
before(async () => {
  rig = await startMocksRig();
  rig.handler = (request, response) => {
    count += 1;
    response.setHeader("X-Count", String(count));
    if (request.url?.startsWith("/gzip") === true) {
      response.setHeader("Content-Encoding", "gzip");
      return void response.end(gzipSync("compressed"));
    }
    if (request.url === "/empty") return void response.writeHead(204).end();
    response.end(`${request.method} ${request.url} ${count}`);
  };
});
after(async () => {
  await rig[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await rig.api("DELETE", "/mocks/serving");
});

/** Records requests in a new session, and makes another one active. */
async function recorded(
  requests: readonly (string | { url: string; method?: string; body?: string })[],
): Promise<string> {
  const { id } = (await rig.api("POST", "/sessions", { name: "Recorded" })).json as { id: string };
  await rig.api("POST", `/sessions/${id}/switch`);
  for (const request of requests) {
    const given = typeof request === "string" ? { url: request } : request;
    await rig.get({ ...given, url: rig.origin.url + given.url });
  }
  await waitUntil(async () => {
    const { json } = await rig.api("GET", "/traffic/count");
    return (json as { count: number }).count === requests.length;
  });
  const other = (await rig.api("POST", "/sessions", {})).json as { id: string };
  await rig.api("POST", `/sessions/${other.id}/switch`);
  return id;
}

async function serve(sessionId: string, more: object = {}): Promise<MockServing> {
  const { status, json } = await rig.api("POST", "/mocks/serving", { session_id: sessionId, ...more });
  assert.equal(status, 200, JSON.stringify(json));
  return json as MockServing;
}

const misses = async () => (await rig.api("GET", "/mocks/serving/misses")).json as MockMiss[];
const get = async (url: string, method = "GET", body?: string) =>
  await rig.get({ url: rig.origin.url + url, method, ...(body === undefined ? {} : { body }) });

test("recorded responses are replayed in order without a connection to any origin", async () => {
  const before = count;
  const id = await recorded([
    "/a?x=1&y=2",
    "/a?x=1&y=2",
    "/gzip",
    "/empty",
    { url: "/a?x=1&y=2", method: "POST", body: "b" },
  ]);
  const status = await serve(id);
  assert.deepEqual(
    [status.serving, status.strict, status.recorded, status.skipped, status.session_name],
    [true, true, 5, 0, "Recorded"],
  );
  const connections = rig.origin.connectionCount;
  const first = `GET /a?x=1&y=2 ${before + 1}`;
  const second = `GET /a?x=1&y=2 ${before + 2}`;
  assert.equal((await get("/a?x=1&y=2")).text, first);
  assert.equal((await get("/a?y=2&x=1")).text, second);
  assert.equal((await get("/a?x=1&y=2")).text, second);
  assert.equal((await get("/a?x=1&y=2", "POST", "other")).text, `POST /a?x=1&y=2 ${before + 5}`);
  const coded = await rig.client.fetch(`${rig.origin.url}/gzip`);
  assert.equal(coded.header("content-encoding"), "gzip");
  assert.deepEqual(coded.body, gzipSync("compressed"));
  assert.equal((await get("/empty")).status, 204);
  assert.equal(rig.origin.connectionCount, connections);
  const { answered, missed } = (await rig.api("GET", "/mocks/serving")).json as MockServing;
  assert.deepEqual([answered, missed], [6, 0]);
});

test("an unrecorded request is a 502 with the closest recorded requests, and reaches no origin", async () => {
  const id = await recorded(["/items?page=1&ts=5", "/items/7", { url: "/items", method: "POST", body: "x" }]);
  await serve(id);
  const seen = rig.origin.requests.length;
  const connections = rig.origin.connectionCount;
  const missed = await get("/items?page=2&ts=9&<b>=1");
  assert.equal(missed.status, 502);
  assert.match(missed.text, /This request was not recorded/);
  assert.match(missed.text, /query `page`: recorded `1`, requested `2`/);
  assert.match(missed.text, /query `ts`: recorded `5`, requested `9`/);
  const html = await rig.client.fetch({
    url: `${rig.origin.url}/items?q=<script>`,
    headers: [["Accept", "text/html"]],
  });
  assert.match(html.header("content-type") ?? "", /text\/html/);
  assert.doesNotMatch(html.body.toString(), /<script>/);
  assert.equal((await rig.get("https://unheard-of.invalid/")).status, 502);
  assert.deepEqual([rig.origin.requests.length, rig.origin.connectionCount], [seen, connections]);
  const [nowhere, , first] = await misses();
  assert.deepEqual([nowhere?.url, nowhere?.near], ["https://unheard-of.invalid/", []]);
  assert.equal(first?.near[0]?.url, `${rig.origin.url}/items?page=1&ts=5`);
  assert.ok(first.near[0].entry_id !== "");
  assert.ok(first.near.length > 1);
  const rows = await waitUntil(async () => {
    const { json } = await rig.api("GET", "/traffic?host=unheard-of.invalid");
    return (json as { trace: { rule_id: string }[] }[])[0];
  });
  assert.equal(rows.trace[0]?.rule_id, id);
});

test("request matching is configurable: ignored parameters, bodies, other hosts", async () => {
  const before = count;
  const id = await recorded([
    { url: "/q?ts=1&a=1", method: "POST", body: "one" },
    { url: "/q?ts=2&a=1", method: "POST", body: "two" },
  ]);
  await serve(id, { match: { ignore_query: ["ts"], body: true } });
  assert.equal((await get("/q?a=1&ts=77", "POST", "two")).text, `POST /q?ts=2&a=1 ${before + 2}`);
  assert.equal((await get("/q?a=1", "POST", "one")).text, `POST /q?ts=1&a=1 ${before + 1}`);
  const other = await get("/q?a=1", "POST", "three");
  assert.equal(other.status, 502);
  assert.match(other.text, /the body differs/);
  await serve(id, { match: { host: false, query: false, method: false } });
  assert.equal((await rig.get("https://any.invalid/q")).text, `POST /q?ts=1&a=1 ${before + 1}`);
});

test("responses can cycle or be used up", async () => {
  const before = count;
  const id = await recorded(["/r", "/r"]);
  const ask = async () => {
    const texts = [];
    for (let index = 0; index < 3; index += 1) texts.push((await get("/r")).text.split("\n")[0]);
    return texts;
  };
  const [first, second] = [1, 2].map((index) => `GET /r ${before + index}`);
  await serve(id, { repeat: "cycle" });
  assert.deepEqual(await ask(), [first, second, first]);
  await serve(id, { repeat: "none" });
  assert.deepEqual(await ask(), [first, second, "502 All 2 recorded responses to this request were used"]);
});

test("rules take precedence over the session, and in lenient mode unrecorded requests go to their origin", async () => {
  const id = await recorded(["/known"]);
  await serve(id, { strict: false });
  const rule = await rig.mock({
    name: "m",
    condition: { type: "path_pattern", pattern: "^/known$" },
    response: { body: "rule" },
  });
  assert.equal((await get("/known")).text, "rule");
  await rig.api("DELETE", `/mocks/${rule}`);
  const before = count;
  assert.notEqual((await get("/known")).text, "rule");
  assert.equal(count, before);
  assert.equal((await get("/unknown")).status, 200);
  assert.equal(count, before + 1);
  assert.equal((await misses()).length, 1);
});

test("a session recorded while served replays responses of origins, not its own", async () => {
  const before = count;
  const id = await recorded(["/loop"]);
  await rig.api("POST", `/sessions/${id}/switch`);
  await serve(id);
  assert.equal((await get("/loop")).text, `GET /loop ${before + 1}`);
  assert.equal((await get("/not-there")).status, 502);
  await waitUntil(async () => ((await rig.api("GET", "/traffic/count")).json as { count: number }).count === 3);
  const again = await serve(id, { repeat: "none" });
  assert.deepEqual([again.recorded, again.skipped], [1, 2]);
  const other = (await rig.api("POST", "/sessions", {})).json as { id: string };
  await rig.api("POST", `/sessions/${other.id}/switch`);
});

test("an unintercepted tunnel is refused in strict mode", async () => {
  const id = await recorded(["/t"]);
  await rig.api("PATCH", "/config", { passthrough_domains: ["127.0.0.1"] });
  await serve(id);
  const connections = rig.origin.connectionCount;
  const { response, connection } = await rig.client.tunnel(`127.0.0.1:${rig.origin.port}`);
  connection.destroy();
  await rig.api("PATCH", "/config", { passthrough_domains: [] });
  assert.equal(response.status, 502);
  assert.equal(rig.origin.connectionCount, connections);
});

test("serving ends on demand, and unknown sessions are not served", async () => {
  const id = await recorded(["/e"]);
  await serve(id);
  const stopped = await rig.api("DELETE", "/mocks/serving");
  assert.equal((stopped.json as MockServing).serving, false);
  assert.equal((await get("/never-recorded")).status, 200);
  assert.equal((await rig.api("POST", "/mocks/serving", { session_id: "nobody" })).status, 404);
  assert.equal((await rig.api("POST", "/mocks/serving", { session_id: id, match: { color: true } })).status, 400);
  assert.deepEqual(await misses(), []);
});
