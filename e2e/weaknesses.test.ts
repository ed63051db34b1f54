import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import type {
  Breakpoint,
  CaptureSession,
  MockRule,
  MockVersion,
  PausedItem,
  ReplayResult,
  ServerMessage,
  TrafficEntry,
} from "@headworks/capture-contract";
import { peer, proxyClient, rawClient, runProcess, startOrigin, waitUntil } from "@headworks/testkit";
import type { Origin, ProxiedRequest, ProxyClient, RawResponse } from "@headworks/testkit";
import { WebSocket } from "ws";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir, workDirectory } from "./rig.ts";
import type { Weir } from "./rig.ts";

// Known weaknesses of other capture proxies, each tested with the running program.

const curl = peer("curl");
const cleanups = new Cleanups();
let weir: Weir;
let origin: Origin;
let secure: Origin;
let client: ProxyClient;
/** Methods and bytes at the origin, newest last. */
const received: { readonly method: string; readonly url: string; readonly body: string }[] = [];

before(async () => {
  weir = cleanups.use(await startWeir());
  origin = cleanups.use(await startOrigin({ handler: serve }));
  secure = cleanups.use(await startOrigin({ handler: serve, tls: { authority: originAuthority, names: LOCAL_NAMES } }));
  client = proxyClient(weir.proxyPort, { ca: weir.caPem, timeoutMs: 60_000 });
});
after(() => cleanups.run());

function serve(request: IncomingMessage, response: ServerResponse): void {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => {
    received.push({ method: request.method ?? "", url: request.url ?? "", body: Buffer.concat(pieces).toString() });
    const [path = "/"] = (request.url ?? "/").split("?");
    const status = Number(/^\/status\/(\d+)/.exec(path)?.[1] ?? 200);
    response.writeHead(status, ["Content-Type", "text/plain", "X-Twice", "one", "x-twice", "two"]);
    if (path === "/large-chunked") for (let count = 0; count < 40; count++) response.write("0123456789".repeat(1000));
    response.end(path === "/large-chunked" ? "" : `response to ${path}`);
  });
}

const plain = (path: string): string => `http://127.0.0.1:${origin.port}${path}`;

async function api(method: string, path: string, body?: unknown): Promise<{ status: number; value: unknown }> {
  const response = await fetch(`${weir.apiUrl}/api${path}`, {
    method,
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, value: text === "" ? undefined : (JSON.parse(text) as unknown) };
}

async function made<T>(path: string, body: unknown, method = "POST"): Promise<T> {
  const { status, value } = await api(method, path, body);
  assert.ok(status >= 200 && status < 300, `${method} ${path} got ${status}: ${JSON.stringify(value)}`);
  return value as T;
}

async function send(path: string, more: Omit<ProxiedRequest, "url"> = {}): Promise<RawResponse> {
  return await client.fetch({ ...more, url: plain(path) });
}

async function visit(path: string): Promise<TrafficEntry> {
  await send(path);
  const [entry] = await weir.waitForEntries(1, plain(path));
  assert.ok(entry);
  return entry;
}

/** A client of `/ws` that collects its messages. */
async function live(query = ""): Promise<{ socket: WebSocket; messages: ServerMessage[]; readonly end: () => void }> {
  const socket = new WebSocket(`${weir.apiUrl.replace("http", "ws")}/ws${query}`);
  const messages: ServerMessage[] = [];
  socket.on("message", (data: Buffer) => messages.push(JSON.parse(data.toString("utf8")) as ServerMessage));
  await waitUntil(() => messages.some(({ type }) => type === "InitialTraffic"), { what: "the first list" });
  return { socket, messages, end: () => socket.terminate() };
}

const added = (messages: readonly ServerMessage[]): string[] =>
  messages.flatMap((each) => (each.type === "Traffic" && each.data.type === "Added" ? [each.data.data.url] : []));

test("weakness 1: a filter in Subscribe limits the events", async () => {
  const { socket, messages, end } = await live();
  socket.send(JSON.stringify({ type: "Subscribe", data: { filter: { search: "/wanted" } } }));
  socket.send(JSON.stringify({ type: "Ping" }));
  await waitUntil(() => messages.some(({ type }) => type === "Pong"), { what: "the filter" });
  await visit("/unwanted-1");
  await visit("/wanted-1");
  await waitUntil(() => added(messages).length > 0, { what: "the wanted entry" });
  assert.deepEqual(added(messages), [plain("/wanted-1")]);
  end();
});

test("weakness 2: an application Ping gets a Pong", async () => {
  const { socket, messages, end } = await live();
  socket.send(JSON.stringify({ type: "Ping" }));
  await waitUntil(() => messages.some(({ type }) => type === "Pong"), { what: "Pong" });
  end();
});

test("weakness 3: GetInitialTraffic returns traffic", async () => {
  await visit("/initial-1");
  const { socket, messages, end } = await live();
  socket.send(JSON.stringify({ type: "GetInitialTraffic", data: { limit: 1 } }));
  const lists = () => messages.flatMap((each) => (each.type === "InitialTraffic" ? [each.data] : []));
  await waitUntil(() => lists().length === 2, { what: "a second list" });
  assert.equal(lists()[1]?.length, 1);
  end();
});

test("weakness 4: a client that reads too slowly is notified of missed events", async () => {
  const connection = await rawClient(Number(new URL(weir.apiUrl).port));
  await connection.write(
    `GET /ws HTTP/1.1\r\nHost: 127.0.0.1:${weir.apiPort}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  );
  await connection.readUntil("Connected");
  const socket = connection.detach();
  socket.pause();
  const long = "x".repeat(3000);
  for (let round = 0; round < 12; round++) {
    await Promise.all(Array.from({ length: 200 }, (_, at) => send(`/flood-${round}-${at}?${long}`)));
  }
  let seen = "";
  socket.on("data", (bytes: Buffer) => (seen = (seen + bytes.toString("latin1")).slice(-4_000_000)));
  socket.resume();
  await waitUntil(() => seen.includes('"Resync"'), { what: "Resync", timeoutMs: 30_000 });
  socket.destroy();
});

test("weakness 5: the first list is bounded, whatever the amount of traffic", async () => {
  const { messages, end } = await live();
  const first = messages.find(({ type }) => type === "InitialTraffic");
  const total = (await weir.get<{ count: number }>("/traffic/count")).count;
  assert.ok(first?.type === "InitialTraffic" && total > 1000);
  assert.ok(first.data.length <= 1000, `${first.data.length} of ${total} entries were sent`);
  end();
});

test("weakness 6: an exact status filters, and an invalid one is refused", async () => {
  await visit("/status/418");
  await visit("/status/404");
  const found = await weir.get<TrafficEntry[]>("/traffic?status_code=418");
  assert.deepEqual(
    found.map(({ response }) => response?.status_code),
    [418],
  );
  const { status, value } = await api("GET", "/traffic?status_code=often");
  assert.equal(status, 400);
  assert.match(JSON.stringify(value), /status_code/);
});

test("weakness 7: order, case and duplicates of fields are kept, through HAR too", async () => {
  const entry = await visit("/twice");
  const twice = (list: readonly (readonly string[])[] = []): string[][] =>
    list.filter(([name]) => name?.toLowerCase() === "x-twice").map((pair) => [...pair]);
  const wanted = [
    ["X-Twice", "one"],
    ["x-twice", "two"],
  ];
  const stored = await weir.get<TrafficEntry>(`/traffic/${entry.id}`);
  assert.deepEqual(twice(stored.response?.headers_list), wanted);
  const har = await (await fetch(`${weir.apiUrl}/api/export/har?ids=${entry.id}`)).json();
  const { session_id } = await made<{ session_id: string }>("/traffic/import/har", har);
  const [again] = await weir.get<TrafficEntry[]>(`/traffic?session_id=${session_id}`);
  const imported = await weir.get<TrafficEntry>(`/traffic/${again?.id ?? ""}`);
  assert.deepEqual(twice(imported.response?.headers_list), wanted);
});

test("weakness 8: a custom method reaches the origin and the entry unchanged", async () => {
  await send("/own-method", { method: "QUERY" });
  const [entry] = await weir.waitForEntries(1, plain("/own-method"));
  assert.equal(entry?.request.method, "QUERY");
  assert.equal(received.findLast(({ url }) => url === "/own-method")?.method, "QUERY");
});

test("weakness 9: replay reads chunked responses whole, verifies TLS and uses the original port", async () => {
  const url = `https://localhost:${secure.port}/large-chunked`;
  const saved = await made<{ id: string }>("/replay/saved", { name: "large", request: { method: "GET", url } });
  const result = await made<ReplayResult>(`/replay/execute/${saved.id}`, {});
  assert.equal(result.response?.status_code, 200);
  const entry = await weir.get<TrafficEntry>(`/traffic/${result.entry_id}`);
  assert.equal(entry.response?.body_size, 400_000);
  const stranger = await startOrigin({ handler: serve, tls: { names: LOCAL_NAMES } });
  try {
    const elsewhere = {
      name: "stranger",
      request: { method: "GET", url: `https://localhost:${stranger.port}/secret` },
    };
    const { id } = await made<{ id: string }>("/replay/saved", elsewhere);
    const refused = await made<ReplayResult>(`/replay/execute/${id}`, {});
    assert.match(refused.error ?? "", /certificate/i);
    assert.equal(received.filter(({ url: path }) => path === "/secret").length, 0);
  } finally {
    await stranger.close();
  }
});

test("weakness 10: a replay of an unknown entry is 404", async () => {
  const { status } = await api("POST", "/replay/execute/00000000-0000-4000-8000-000000000000", {});
  assert.equal(status, 404);
});

test("weakness 11: the cURL command has the scheme and survives quotes in values", { skip: curl.skip }, async () => {
  const value = `it's "quoted" $HOME \`x\` \\ end`;
  await send("/curl-quotes", { method: "POST", headers: [["X-Odd", value]], body: "a'b" });
  const [entry] = await weir.waitForEntries(1, plain("/curl-quotes"));
  assert.ok(entry);
  const { curl: command } = await weir.get<{ curl: string }>(`/export/curl/${entry.id}`);
  assert.ok(command.includes(plain("/curl-quotes")));
  const directory = await workDirectory(cleanups);
  await writeFile(directory.file("command.sh"), command);
  const before = received.length;
  const exit = await runProcess("sh", [directory.file("command.sh")], { timeoutMs: 20_000 });
  assert.equal(exit.code, 0, exit.stderr);
  assert.deepEqual(received.slice(before), [{ method: "POST", url: "/curl-quotes", body: "a'b" }]);
});

test("weakness 12: an update of auto-save keeps omitted fields", async () => {
  await made("/autosave", { rotate_after_requests: 77, rotate_after_minutes: 88 }, "PATCH");
  await made("/autosave", { max_backups: 3 }, "PATCH");
  const settings = await weir.get<Record<string, unknown>>("/autosave");
  assert.equal(settings["rotate_after_requests"], 77);
  assert.equal(settings["rotate_after_minutes"], 88);
  assert.equal(settings["max_backups"], 3);
});

test("weakness 13: conditions on URL, method and host apply to responses", async () => {
  const rule = await made<{ id: string }>("/rewrites", {
    name: "mark the response",
    direction: "response",
    condition: {
      type: "and",
      conditions: [
        { type: "url_pattern", pattern: "/response-rule" },
        { type: "method", method: "GET" },
        { type: "host", pattern: "127.0.0.1" },
      ],
    },
    rewrites: [{ type: "set_header", name: "X-Marked", value: "yes" }],
  });
  const response = await send("/response-rule");
  assert.equal(response.header("X-Marked"), "yes");
  await api("DELETE", `/rewrites/${rule.id}`);
});

test("weakness 14: if too many requests are paused, the oldest continues", async () => {
  const rule = await made<Breakpoint>("/breakpoints", { name: "all", direction: "request", url_pattern: "/pause-" });
  const paused = async (): Promise<PausedItem[]> => await weir.get("/breakpoints/paused");
  const responses: string[] = [];
  const sendAndCollect = async (path: string): Promise<void> => {
    responses.push((await send(path)).body.toString());
  };
  const running = [sendAndCollect("/pause-first")];
  await waitUntil(async () => (await paused()).length === 1, { what: "the first to be paused" });
  for (let at = 1; at <= 99; at++) running.push(sendAndCollect(`/pause-${at}`));
  await waitUntil(async () => (await paused()).length === 100, { what: "100 to be paused", timeoutMs: 30_000 });
  assert.deepEqual(responses, []);
  running.push(sendAndCollect("/pause-last"));
  await waitUntil(() => responses.length > 0, { what: "one to go on" });
  assert.deepEqual(responses, ["response to /pause-first"]);
  await api("DELETE", `/breakpoints/${rule.id}`);
  await made("/breakpoints/resume-all", {});
  await Promise.all(running);
});

test("weakness 15: a pattern with exponential backtracking elsewhere is matched at once", async () => {
  const rule = await made<{ id: string }>("/rewrites", {
    name: "nested",
    direction: "request",
    condition: { type: "url_pattern", pattern: "(a+)+$" },
    rewrites: [{ type: "set_header", name: "X-Nested", value: "yes" }],
  });
  const entry = await visit(`/${"a".repeat(4000)}!`);
  assert.equal(entry.trace.length, 0);
  await api("DELETE", `/rewrites/${rule.id}`);
});

test("weakness 16: no rule reads a file outside of the allowed directories", async () => {
  for (const file of ["/etc/passwd", "../../../../../../etc/passwd"]) {
    const { id } = await made<{ id: string }>("/mocks", {
      name: "passwd",
      condition: { type: "url_pattern", pattern: "/passwd" },
      response: { status_code: 200, body_file: file },
    });
    const response = await send("/passwd");
    assert.equal(response.status, 500);
    assert.doesNotMatch(response.body.toString(), /root:/);
    await api("DELETE", `/mocks/${id}`);
  }
  const mapped = await api("POST", "/rewrites", {
    name: "passwd",
    direction: "response",
    condition: { type: "url_pattern", pattern: "/passwd" },
    rewrites: [{ type: "map_to_file", path: "../../../../etc/passwd" }],
  });
  assert.equal(mapped.status, 400, JSON.stringify(mapped.value));
});

test("weakness 17: all sessions are listed, with their number of requests", async () => {
  const before = await weir.get<CaptureSession[]>("/sessions");
  const made17 = await made<{ id: string }>("/sessions", { name: "another" });
  const sessions = await weir.get<CaptureSession[]>("/sessions");
  assert.equal(sessions.length, before.length + 1);
  assert.equal(sessions.find(({ id }) => id === made17.id)?.request_count, 0);
  assert.ok(sessions.some(({ request_count }) => request_count > 1000));
});

test("weakness 18: an empty collection can be disabled", async () => {
  const { id } = await made<{ id: string }>("/mocks/collections", { name: "empty" });
  assert.deepEqual(await made(`/mocks/collections/${id}/toggle`, { enabled: false }), {
    id,
    enabled: false,
    toggled: 0,
  });
});

test("weakness 19: input and output of the API have one form, where others had two", async () => {
  const sequence = {
    name: "in turn",
    condition: { type: "url_pattern", pattern: "/in-turn" },
    response_config: {
      type: "sequence",
      cycle: true,
      responses: [
        { status_code: 201, body: "first" },
        { status_code: 202, body: "second" },
      ],
    },
  };
  const { id } = await made<{ id: string }>("/mocks", sequence);
  const shown = await weir.get<MockRule>(`/mocks/${id}`);
  await made(`/mocks/${id}`, shown, "PUT");
  const statuses: number[] = [];
  for (let at = 0; at < 3; at++) statuses.push((await send("/in-turn")).status);
  assert.deepEqual(statuses, [201, 202, 201]);
  await made(`/mocks/${id}`, { ...shown, response_config: { type: "single", response: { status_code: 203 } } }, "PUT");
  const [version] = await weir.get<MockVersion[]>(`/mocks/${id}/versions`);
  assert.match(version?.saved_at ?? "", /^\d{4}-\d\d-\d\dT.*Z$/);
  await api("DELETE", `/mocks/${id}`);
});

test("weakness 20: removing the first query parameter keeps a valid query", async () => {
  const rule = await made<{ id: string }>("/rewrites", {
    name: "without token",
    direction: "request",
    condition: { type: "url_pattern", pattern: "/query-rule" },
    rewrites: [{ type: "remove_query_param", name: "token" }],
  });
  await send("/query-rule?token=1&page=2");
  assert.equal(received.findLast(({ url }) => url.startsWith("/query-rule"))?.url, "/query-rule?page=2");
  await send("/query-rule?token=1");
  assert.equal(received.findLast(({ url }) => url.startsWith("/query-rule"))?.url, "/query-rule");
  await api("DELETE", `/rewrites/${rule.id}`);
});
