import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { ServerResponse } from "node:http";
import { request } from "node:http";
import { gzipSync } from "node:zlib";
import { waitUntil } from "@headworks/testkit";
import type {
  AssembledStream,
  StreamDetail,
  StreamFrame,
  StreamSummary,
  TrafficEntry,
} from "@headworks/capture-contract";
import { startProxyRig } from "../../../test/proxy-rig.ts";
import type { ProxyRig } from "../../../test/proxy-rig.ts";

let rig: ProxyRig;
before(async () => {
  rig = await startProxyRig();
});
after(async () => {
  await rig[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await rig.api("POST", "/traffic/clear", undefined, 204);
});

/** Waits until the only stream satisfies `isReady`. */
const theStream = async (isReady: (stream: StreamSummary) => boolean = () => true): Promise<StreamSummary> =>
  await waitUntil(async () => {
    const [stream] = await rig.api<StreamSummary[]>("GET", "/streams");
    return stream !== undefined && isReady(stream) ? stream : undefined;
  });

const framesOf = async (id: string, query = ""): Promise<StreamFrame[]> =>
  await rig.api<StreamFrame[]>("GET", `/streams/${id}/frames${query}`);

/** Opens a stream through the proxy; returns the origin's writer and the bytes the client received. */
async function openStream(type: string, path = "/events") {
  const origin = Promise.withResolvers<ServerResponse>();
  rig.respond = (_, response) => {
    response.writeHead(200, { "content-type": type });
    response.flushHeaders();
    origin.resolve(response);
  };
  const { hostname, port } = new URL(rig.proxy.addresses.proxy);
  const got: string[] = [];
  const outgoing = request({
    host: hostname,
    port,
    path: `http://127.0.0.1:${rig.originPort}${path}`,
    headers: { host: `127.0.0.1:${rig.originPort}` },
    agent: false,
  });
  outgoing.on("response", (response) => response.on("data", (piece: Buffer) => got.push(piece.toString())));
  outgoing.on("error", () => undefined);
  outgoing.end();
  return { origin: await origin.promise, got, client: outgoing };
}

test("a stream is listed before its first event, and each event before the next one is sent", async () => {
  const { origin, got } = await openStream("text/event-stream");
  const opened = await theStream();
  assert.deepEqual([opened.kind, opened.state, opened.closed_at, opened.path], ["sse", "open", null, "/events"]);
  for (const [index, event] of ["one", "two", "three"].entries()) {
    origin.write(`event: tick\nid: ${index}\ndata: ${event}\n\n`);
    await waitUntil(() => got.length === index + 1);
    const frames = await waitUntil(async () => {
      const known = await framesOf(opened.id);
      return known.length === index + 1 ? known : undefined;
    });
    assert.equal(frames.at(-1)?.text, event);
    assert.deepEqual(frames.at(-1)?.attributes, { event: "tick", id: String(index) });
  }
  origin.end();
  const closed = await theStream(({ state }) => state === "closed");
  assert.deepEqual([closed.frames_received, closed.frames_stored, closed.bytes_received], [3, 3, 11]);
  assert.equal(
    got.join(""),
    "one two three"
      .split(" ")
      .map((event, index) => `event: tick\nid: ${index}\ndata: ${event}\n\n`)
      .join(""),
  );
});

test("a stream has its fields and the id of its entry", async () => {
  rig.respond = (_, response) => void response.writeHead(200, { "content-type": "application/x-ndjson" }).end("1\n2\n");
  await rig.send({ path: "/lines" });
  const { id } = await theStream(({ state }) => state === "closed");
  const detail = await rig.api<StreamDetail>("GET", `/streams/${id}`);
  assert.equal(detail.kind, "json");
  assert.ok(detail.request_headers.some(([name]) => name.toLowerCase() === "host"));
  assert.ok(
    detail.response_headers?.some(([name, value]) => name === "content-type" && value === "application/x-ndjson"),
  );
  const entry = await waitUntil(async () => {
    const response = await fetch(`${rig.proxy.addresses.api}/api/traffic/${id}`);
    return response.status === 200 ? ((await response.json()) as { request: { path: string } }) : undefined;
  });
  assert.equal(entry.request.path, "/lines");
});

test("frames are filtered, searched, paged, previewed and returned whole", async () => {
  const long = `data: ${"ü".repeat(3000)} needle\n\n`;
  const events = Array.from({ length: 20 }, (_, index) => `data: event ${index}\n\n`).join("");
  rig.respond = (_, response) =>
    void response.writeHead(200, { "content-type": "text/event-stream" }).end(events + long);
  await rig.send({ path: "/many" });
  const { id } = await theStream(({ frames_stored }) => frames_stored === 21);
  assert.deepEqual(
    (await framesOf(id, "?limit=2&offset=5")).map(({ ordinal }) => ordinal),
    [6, 7],
  );
  assert.deepEqual(
    (await framesOf(id, "?after=19")).map(({ ordinal }) => ordinal),
    [20, 21],
  );
  assert.deepEqual(
    (await framesOf(id, "?order=desc&limit=1")).map(({ ordinal }) => ordinal),
    [21],
  );
  assert.deepEqual(
    (await framesOf(id, "?search=NEEDLE")).map(({ ordinal }) => ordinal),
    [21],
  );
  assert.equal((await framesOf(id, "?direction=send")).length, 0);
  assert.equal((await framesOf(id, "?type=event")).length, 21);
  const [preview] = await framesOf(id, "?after=20&preview=7");
  assert.deepEqual([preview?.text, preview?.preview_size, preview?.size], ["üüü", 7, 6007]);
  const body = await fetch(`${rig.proxy.addresses.api}/api/streams/${id}/frames/21/body`);
  assert.equal(await body.text(), `${"ü".repeat(3000)} needle`);
  assert.equal(body.headers.get("content-type"), "application/octet-stream");
  assert.equal(body.headers.get("x-content-type-options"), "nosniff");
});

test("a chat in a coded response is assembled", async () => {
  const chunk = (delta: object) =>
    `data: ${JSON.stringify({ object: "chat.completion.chunk", choices: [{ index: 0, delta }] })}\n\n`;
  const events = `${chunk({ content: "Hel" })}: keep-alive\n\n${chunk({ content: "lo" })}data: [DONE]\n\n`;
  rig.respond = (_, response) =>
    void response
      .writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" })
      .end(gzipSync(events));
  await rig.send({ path: "/chat" });
  const { id } = await theStream(({ state, frames_stored }) => state === "closed" && frames_stored === 4);
  const assembled = await rig.api<AssembledStream>("GET", `/streams/${id}/assembled`);
  assert.equal(assembled.chat?.format, "openai-chat");
  assert.equal(assembled.chat.choices[0]?.text, "Hello");
  assert.equal(assembled.chat.complete, true);
  assert.equal(assembled.truncated, false);
  assert.deepEqual(
    assembled.events.map(({ name, count }) => [name, count]),
    [["message", 4]],
  );
  assert.equal(assembled.text.split("\n").at(-1), "[DONE]");
});

test("a stream that is no chat is assembled as text", async () => {
  rig.respond = (_, response) =>
    void response.writeHead(200, { "content-type": "text/event-stream" }).end("data: a\n\nevent: b\ndata: c\n\n");
  await rig.send({ path: "/plain" });
  const { id } = await theStream(({ frames_stored }) => frames_stored === 2);
  const assembled = await rig.api<AssembledStream>("GET", `/streams/${id}/assembled`);
  assert.deepEqual([assembled.text, assembled.chat, assembled.frames], ["a\nc", null, 2]);
});

test("a client disconnect ends the stream with a reason", async () => {
  const { origin, got, client } = await openStream("text/event-stream");
  origin.write("data: a\n\n");
  await waitUntil(() => got.length === 1);
  client.socket?.resetAndDestroy();
  const closed = await theStream(({ state }) => state === "closed");
  assert.match(closed.close_reason ?? "", /client/i);
  assert.notEqual(closed.closed_at, null);
});

test("an event stream that its origin cuts or resets ends with a reason, and its entry with an error", async () => {
  for (const cut of ["destroy", "resetAndDestroy"] as const) {
    await rig.api("POST", "/traffic/clear", undefined, 204);
    const { origin, got } = await openStream("text/event-stream");
    origin.write("data: a\n\ndata: half");
    await waitUntil(() => got.length > 0);
    origin.socket?.[cut]();
    const closed = await theStream(({ state }) => state === "closed");
    assert.match(closed.close_reason ?? "", /(?:closed|reset) the connection/, cut);
    const entry = await waitUntil(async () => {
      const found = await rig.api<TrafficEntry>("GET", `/traffic/${closed.id}`);
      return found.state === "failed" ? found : undefined;
    });
    assert.equal(entry.failure?.message, closed.close_reason);
  }
});

test("lists filter by kind and session, and have pages", async () => {
  for (const [path, type] of [
    ["/a", "text/event-stream"],
    ["/b", "application/jsonl"],
    ["/c", "text/event-stream"],
  ] as const) {
    rig.respond = (_, response) => void response.writeHead(200, { "content-type": type }).end("\n");
    await rig.send({ path });
  }
  await waitUntil(async () => (await rig.api<StreamSummary[]>("GET", "/streams")).length === 3);
  const paths = async (query: string) =>
    (await rig.api<StreamSummary[]>("GET", `/streams${query}`)).map(({ path }) => path);
  assert.deepEqual(await paths(""), ["/c", "/b", "/a"]);
  assert.deepEqual(await paths("?kind=json"), ["/b"]);
  assert.deepEqual(await paths("?limit=1&offset=1"), ["/b"]);
  assert.deepEqual(await paths("?session_id=nobody"), []);
  assert.equal((await paths("?session_id=all")).length, 3);
});

test("a stream of a mock is recorded as well", async () => {
  const mock = {
    name: "instead",
    condition: { type: "path_pattern", pattern: "^/mocked$" },
    response: { status_code: 200, headers: { "content-type": "text/event-stream" }, body: "data: mocked\n\n" },
  };
  await rig.api("POST", "/mocks", mock, 201);
  await rig.send({ path: "/mocked" });
  const { id } = await theStream(({ frames_stored }) => frames_stored === 1);
  assert.equal((await framesOf(id))[0]?.text, "mocked");
});

test("the rewritten stream is recorded after the origin's, and marked", async () => {
  const rule = {
    name: "edit",
    condition: { type: "path_pattern", pattern: "^/rewritten$" },
    rewrites: [{ type: "body_rewrite", pattern: "secret", replacement: "hidden" }],
    direction: "response",
  };
  await rig.api("POST", "/rewrites", rule, 201);
  rig.respond = (_, response) => void response.writeHead(200, { "content-type": "application/jsonl" }).end("secret\n");
  const response = await rig.send({ path: "/rewritten" });
  assert.equal(response.body.toString(), "hidden\n");
  const { id, attributes } = await theStream(({ frames_stored }) => frames_stored === 2);
  assert.deepEqual(
    (await framesOf(id)).map(({ text, effect }) => [text, effect]),
    [
      ["secret", null],
      ["hidden", "modified"],
    ],
  );
  assert.notEqual(attributes["replaced"], undefined);
});

for (const path of [
  "/streams/nothing",
  "/streams/nothing/frames",
  "/streams/nothing/frames/1/body",
  "/streams/nothing/assembled",
]) {
  test(`${path} is not found`, async () => {
    await rig.api("GET", path, undefined, 404);
  });
}

for (const query of ["?limit=0", "?limit=1001", "?direction=up", "?type=x", "?unknown=1", "?preview=65537"]) {
  test(`frames reject ${query}`, async () => {
    await rig.api("GET", `/streams/x/frames${query}`, undefined, 400);
  });
}

test("responses that are no streams, or whose bodies are not captured, are not listed", async () => {
  rig.respond = (_, response) => void response.writeHead(200, { "content-type": "application/json" }).end("{}");
  await rig.send({ path: "/json" });
  await rig.api("PATCH", "/config", { capture_response_bodies: false });
  rig.respond = (_, response) =>
    void response.writeHead(200, { "content-type": "text/event-stream" }).end("data: a\n\n");
  await rig.send({ path: "/switched-off" });
  await rig.api("PATCH", "/config", { capture_response_bodies: true });
  await rig.send({ path: "/on" });
  await theStream(({ path }) => path === "/on");
  assert.equal((await rig.api<StreamSummary[]>("GET", "/streams")).length, 1);
});
