import assert from "node:assert/strict";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { test } from "node:test";
import type { ServerMessage, TrafficSnapshot } from "@headworks/capture-contract";
import { proxyClient, startOrigin } from "@headworks/testkit";
import { entryLine, EntryPrinter } from "#cli/tail.ts";
import { textWidth } from "#cli/terminal.ts";
import { runInside, serveWeir, startWeir, window } from "./cli-rig.ts";
import type { MessageSocket } from "#cli/invocation.ts";

function row(id: string, changes: Partial<TrafficSnapshot> = {}): TrafficSnapshot {
  const timings = { blocked: null, dns: null, connect: null, tls: null, send: null, wait: null, receive: null };
  return {
    id,
    seq: 1,
    session_id: "s",
    state: "complete",
    method: "GET",
    url: `http://a/${id}`,
    scheme: "http",
    host: "a",
    path: `/${id}`,
    status_code: 200,
    status_message: "OK",
    content_type: null,
    response_content_type: null,
    resource_type: "json",
    duration_ms: 12,
    ttfb_ms: 1,
    request_size: 10,
    response_size: 2048,
    timestamp: "2026-01-01T00:00:00.000Z",
    modified: false,
    applied: [],
    has_request_body: false,
    has_response_body: true,
    is_passthrough: false,
    http_version: "HTTP/1.1",
    script_intercepted: false,
    device_id: null,
    client_addr: null,
    server_addr: null,
    failure_code: null,
    source: "upstream",
    has_note: false,
    timings,
    ...changes,
  };
}

/** A socket whose other side answers the Ping with these frames and ends. */
function scripted(frames: readonly (ServerMessage | readonly ServerMessage[])[], sent: string[] = []): MessageSocket {
  let close: (reason: string) => void = () => undefined;
  let message: (text: string) => void = () => undefined;
  return {
    onOpen: (listener) => void setImmediate(listener),
    onMessage: (listener) => (message = listener),
    onClose: (listener) => (close = listener),
    send: (text) => {
      sent.push(text);
      if (!text.includes("Ping")) return;
      // Before the answer, as a service does that has not seen the filter yet.
      message(JSON.stringify({ type: "Traffic", data: { type: "Added", data: row("unfiltered") } }));
      message(JSON.stringify({ type: "InitialTraffic", data: [row("unasked")] }));
      for (const frame of frames) message(JSON.stringify(frame));
      setTimeout(() => close("the service stopped"), 100);
    },
    close: () => close("closed"),
  };
}

const dead: MessageSocket = {
  onOpen: () => undefined,
  onMessage: () => undefined,
  onClose: (listener) => void setImmediate(() => listener("refused")),
  send: () => undefined,
  close: () => undefined,
};

/** A service that has these rows stored, newest first, and whose n-th connection is the n-th socket. */
async function followed(
  args: readonly string[],
  stored: readonly TrafficSnapshot[][],
  sockets: readonly MessageSocket[],
): Promise<{ ids: string[]; code: number; stderr: string; requests: string[]; urls: string[] }> {
  const requests: string[] = [];
  const urls: string[] = [];
  const rows = [...stored];
  const left = [...sockets];
  const server = createHttpServer((request, response) => {
    requests.push(request.url ?? "");
    response.setHeader("content-type", "application/json");
    const page = rows.shift();
    response.statusCode = page === undefined ? 400 : 200;
    response.end(
      JSON.stringify(
        page === undefined ? { error: "that is all", code: "VALIDATION_ERROR" } : { total: 0, rows: page },
      ),
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const openSocket = async (url: string): Promise<MessageSocket> => {
    urls.push(url.replace(/:\d+/, ""));
    return await Promise.resolve(left.shift() ?? dead);
  };
  const api = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const result = await runInside(["traffic", "tail", "--json", "--api-url", api, ...args], { parts: { openSocket } });
  server.close();
  const lines = result.stdout.split("\n").filter((line) => line !== "");
  return { ...result, requests, urls, ids: lines.map((line) => (JSON.parse(line) as TrafficSnapshot).id) };
}

const pong: ServerMessage = { type: "Pong" };
const added = (data: TrafficSnapshot): ServerMessage => ({ type: "Traffic", data: { type: "Added", data } });
const updated = (data: TrafficSnapshot): ServerMessage => ({ type: "Traffic", data: { type: "Updated", data } });

test("each exchange is one line, when it ends, stored ones first, whatever how often it is announced", async () => {
  const sent: string[] = [];
  const failed = row("c", { seq: 3, state: "failed", status_code: null, failure_code: "UPSTREAM_REFUSED" });
  const live = scripted(
    [
      pong,
      [added(row("c", { seq: 3, state: "pending" })), updated(failed), updated(row("a"))],
      { type: "Traffic", data: { type: "CountUpdate", data: 3 } },
    ],
    sent,
  );
  const stored = [row("b", { seq: 2 }), row("a", { seq: 1 })];
  const last = scripted([pong]);
  const { ids, code, stderr, requests } = await followed(["-q", "host:a", "-n", "5"], [stored], [live, last]);
  assert.deepEqual(ids, ["a", "b", "c"]);
  assert.deepEqual(
    sent.map((text) => JSON.parse(text) as unknown),
    [{ type: "Subscribe", data: { filter: { q: "host:a" } } }, { type: "Ping" }],
  );
  assert.equal(requests[0], "/api/traffic/rows?q=host%3Aa&sort=seq&order=desc&limit=5");
  assert.equal(code, 1);
  assert.match(stderr, /weir: that is all\n$/);
});

test("a connection that ends is made again, and what came in between is shown once and nothing older", async () => {
  const first = [row("a", { seq: 5 })];
  const second = [row("b", { seq: 6 }), row("a", { seq: 5 }), row("long-ago", { seq: 4 })];
  const problem: ServerMessage = { type: "Error", data: { message: "not now" } };
  const full: ServerMessage = { type: "Notice", data: { code: "entries-removed", message: "it is full" } };
  const again = scripted([pong, problem, full, { type: "Resync", data: { missed: 9 } }]);
  const { ids, stderr, urls } = await followed(
    ["-n", "1"],
    [first, second, second],
    [scripted([pong]), dead, again, scripted([pong])],
  );
  assert.deepEqual(ids, ["a", "b"]);
  assert.deepEqual(new Set(urls), new Set(["ws://127.0.0.1/ws?batch=1"]));
  assert.match(stderr, /connection lost \(the service stopped\); reconnecting/);
  assert.match(stderr, /9 events were missed/);
  assert.match(stderr, /weir: not now/);
  assert.match(stderr, /weir: it is full\n/);
});

for (const frame of ["no JSON", '{"type":"Error"}', "[null]"]) {
  test(`a socket that says ${frame} is not Weir's, and that is said once`, async () => {
    const opened: string[] = [];
    const stranger: MessageSocket = {
      ...dead,
      onClose: () => undefined,
      onMessage: (listener) => void setImmediate(() => listener(frame)),
    };
    const openSocket = async (url: string): Promise<MessageSocket> => {
      opened.push(url);
      return await Promise.resolve(stranger);
    };
    const { code, stderr } = await runInside(["traffic", "tail"], { parts: { openSocket } });
    assert.deepEqual([code, opened.length], [1, 1]);
    assert.match(stderr, /^weir: .* does not speak the protocol of Weir's live feed\n$/);
  });
}

test("a query that the service refuses is said once", async () => {
  const refusal = scripted([{ type: "Error", data: { message: "bad\u001b query" } }, pong]);
  const { ids, code, stderr } = await followed(["-q", "bad"], [], [refusal]);
  assert.deepEqual([ids, code, stderr], [[], 1, "weir: bad␛ query\n"]);
});

test("--lines 0 shows only what comes from now on", async () => {
  const live = scripted([pong, added(row("new", { seq: 8 }))]);
  const { ids } = await followed(["-n", "0"], [[row("old", { seq: 7 })]], [live, scripted([pong])]);
  assert.deepEqual(ids, ["new"]);
});

test("without a service tail says how to start one", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await using child = await startWeir(["traffic", "tail", "--api-url", `http://127.0.0.1:${port}`]);
  const { code, stderr } = await child.exited;
  assert.equal(code, 1);
  assert.match(stderr, /No Weir is running at .* start it with `weir serve`/);
});

test("a line is cut to the window and holds no control characters", () => {
  const hostile = row("x", { url: `http://a/\x1b[2J${"日".repeat(200)}`, method: "G\x07T" });
  for (const columns of [60, 80, 120, 200]) {
    const line = entryLine(hostile, window(columns));
    assert.ok(textWidth(line) <= columns, `${textWidth(line)} > ${columns}`);
    assert.doesNotMatch(line, /[\x00-\x1f\x7f-\x9f]/);
  }
});

test("what is remembered against repetition stays bounded", () => {
  const lines: string[] = [];
  const printer = new EntryPrinter({ ...window(80), isTty: false, write: (text) => void lines.push(text) }, true);
  for (let at = 0; at < 6000; at++) printer.take({ type: "Added", data: row(`id-${at}`) });
  printer.take({ type: "Updated", data: row("id-5999") });
  printer.take({ type: "Updated", data: row("id-0") });
  assert.equal(lines.length, 6001);
});

test("tail follows a real service, by query, until it is interrupted", async () => {
  await using origin = await startOrigin({ handler: (_request, response) => void response.end("ok") });
  await using served = await serveWeir();
  await using child = await startWeir(["traffic", "tail", "--json", "-q", "path:/wanted", "--api-url", served.api]);
  const client = proxyClient(Number(new URL(served.proxy).port));
  // Initial rows make it independent of which comes first, the subscription or the exchange.
  await client.fetch(`${origin.url}/other`);
  await client.fetch(`${origin.url}/wanted`);
  const [line] = await child.waitForOutput(/^\{.*\}$/m, 20_000);
  assert.equal((JSON.parse(line) as TrafficSnapshot).url, `${origin.url}/wanted`);
  const exit = await child.stop("SIGINT");
  assert.deepEqual([exit.code, exit.stdout.trim().split("\n").length], [130, 1]);
  await using other = await startWeir(["traffic", "tail", "--json", "--api-url", served.api]);
  await other.waitForOutput(/^\{.*\}$/m, 20_000);
  assert.equal((await other.stop("SIGTERM")).code, 143);
});
