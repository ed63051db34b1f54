import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { json } from "node:stream/consumers";
import { test } from "node:test";
import { ERRORS } from "@headworks/capture-contract";
import type { ServerMessage, TrafficEvent, TrafficFilter, TrafficSnapshot } from "@headworks/capture-contract";
import { rawClient, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { WebSocket } from "ws";
import type { ClientOptions } from "ws";
import { openRig } from "#storage/store-rig.ts";
import { startApi } from "../../test/api-rig.ts";
import type { ApiRig } from "../../test/api-rig.ts";
import { row } from "../../test/rows.ts";

/** A client on `/ws` that keeps what it is sent. */
class Listener {
  readonly webSocket: WebSocket;
  readonly messages: ServerMessage[] = [];
  readonly frames: string[] = [];
  closed: { code: number; reason: string } | undefined;

  constructor(api: ApiRig, path = "/ws", options: ClientOptions = {}) {
    this.webSocket = new WebSocket(`ws://127.0.0.1:${api.port}${path}`, options);
    this.webSocket.on("message", (data) => {
      const text = (data as Buffer).toString();
      this.frames.push(text);
      const parsed = JSON.parse(text) as ServerMessage | ServerMessage[];
      this.messages.push(...(Array.isArray(parsed) ? parsed : [parsed]));
    });
    this.webSocket.on("close", (code, reason) => (this.closed = { code, reason: String(reason) }));
    this.webSocket.on("error", () => undefined);
  }

  send(message: object | string): void {
    this.webSocket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  /** Waits for the message after those taken so far. */
  async next(): Promise<ServerMessage> {
    await waitUntil(() => this.messages.length > 0);
    const message = this.messages.shift();
    assert.ok(message);
    return message;
  }

  /** Takes the two messages every client begins with. */
  async greeted(): Promise<this> {
    assert.equal((await this.next()).type, "Connected");
    assert.equal((await this.next()).type, "InitialTraffic");
    return this;
  }

  /** A round trip: everything the service sent before it has arrived. */
  async settled(): Promise<void> {
    this.send({ type: "Ping" });
    await waitUntil(() => this.messages.some((message) => message.type === "Pong"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.closed) return;
    this.webSocket.terminate();
    await waitUntil(() => this.closed !== undefined);
  }
}

const added = (change: Partial<TrafficSnapshot> = {}): TrafficEvent => ({ type: "Added", data: row(change) });
const updated = (change: Partial<TrafficSnapshot> = {}): TrafficEvent => ({ type: "Updated", data: row(change) });
const traffic = (event: TrafficEvent): ServerMessage => ({ type: "Traffic", data: event });

async function flush(api: ApiRig): Promise<void> {
  await api.clock.advance(50);
}

test("a client is greeted with its id and the latest rows, at both addresses", async () => {
  await using api = await startApi({ latestRows: async (limit) => [row({ seq: limit })] });
  for (const path of ["/ws", "/api/ws"]) {
    await using client = new Listener(api, path);
    const connected = await client.next();
    assert.equal(connected.type, "Connected");
    assert.match(connected.type === "Connected" ? connected.data.client_id : "", /^[0-9a-f-]{36}$/);
    assert.deepEqual(await client.next(), { type: "InitialTraffic", data: [row({ seq: 100 })] });
  }
});

test("the events of a flush reach every client as one frame each, or as one frame in batch mode", async () => {
  await using api = await startApi();
  await using plain = await new Listener(api).greeted();
  await using batched = await new Listener(api, "/ws?batch=1").greeted();
  plain.frames.length = batched.frames.length = 0;
  const events: readonly TrafficEvent[] = [
    added({ id: "a", state: "pending" }),
    added({ id: "b" }),
    updated({ id: "a" }),
    { type: "CountUpdate", data: 2 },
  ];
  for (const event of events) api.events.traffic(event);
  await flush(api);
  const expected = [
    traffic(added({ id: "a" })),
    traffic(added({ id: "b" })),
    traffic({ type: "CountUpdate", data: 2 }),
  ];
  await waitUntil(() => plain.messages.length === 3 && batched.messages.length === 3);
  assert.deepEqual(plain.messages, expected);
  assert.deepEqual(batched.messages, expected);
  assert.equal(plain.frames.length, 3);
  assert.equal(batched.frames.length, 1);
});

test("frames of every length class are read by a WebSocket client", async () => {
  await using api = await startApi();
  await using client = await new Listener(api).greeted();
  for (const length of [0, 200, 70_000]) {
    api.events.traffic(added({ id: `ü${length}`, url: "x".repeat(length) }));
    await flush(api);
    assert.deepEqual(await client.next(), traffic(added({ id: `ü${length}`, url: "x".repeat(length) })));
  }
});

test("deletions and clearing are reported", async () => {
  await using api = await startApi();
  await using client = await new Listener(api).greeted();
  api.events.traffic({ type: "Cleared" });
  api.events.traffic({ type: "Deleted", data: ["x", "y"] });
  await flush(api);
  assert.deepEqual(await client.next(), { type: "Traffic", data: { type: "Cleared" } });
  assert.deepEqual(await client.next(), traffic({ type: "Deleted", data: ["x", "y"] }));
});

test("Ping gets Pong, also as bare text", async () => {
  await using api = await startApi();
  await using client = await new Listener(api).greeted();
  client.send({ type: "Ping" });
  assert.deepEqual(await client.next(), { type: "Pong" });
  client.send("ping");
  assert.deepEqual(await client.next(), { type: "Pong" });
});

test("an invalid message gets an Error with the reason, and the connection stays open", async () => {
  await using api = await startApi();
  await using client = await new Listener(api).greeted();
  const table: readonly (readonly [sent: string | Buffer | object, sentence: string])[] = [
    ["not json", "not valid JSON"],
    ["[]", ": message: must be object"],
    ["null", ": message: must be object"],
    [{}, ": message/type: is required"],
    [{ type: "Shout" }, ': message: type must be one of "Ping", "Subscribe", "Unsubscribe", "GetInitialTraffic"'],
    [{ type: "Subscribe", data: { filter: { colour: "red" } } }, ": message/data/filter/colour: unknown property"],
    [{ type: "Subscribe", data: { filter: { method: 5 } } }, ": message/data/filter/method: "],
    [
      { type: "Subscribe", data: { channels: ["tasks", "nope"] } },
      ': message/data/channels/1: must be one of "changes", "tasks", "frames"',
    ],
    [{ type: "GetInitialTraffic", data: { limit: 1001 } }, ": message/data/limit: must be <= 1000"],
    [{ type: "GetInitialTraffic", data: { limit: -1 } }, ": message/data/limit: must be >= 0"],
    [{ type: "Ping", extra: 1 }, ": message/extra: unknown property"],
    [Buffer.from("{}"), "must be text"],
  ];
  for (const [message, sentence] of table) {
    if (message instanceof Buffer) client.webSocket.send(message);
    else client.send(message);
    const response = await client.next();
    assert.ok(response.type === "Error", JSON.stringify(message));
    assert.ok(response.data.message.includes(sentence), `${JSON.stringify(message)}: ${response.data.message}`);
  }
  await client.settled();
});

test("a filter is applied to events and rows, and one that needs more than rows is refused", async () => {
  const requested: TrafficFilter[] = [];
  await using api = await startApi({
    latestRows: async (_limit, filter) => {
      requested.push(filter);
      return [row({ id: "old-post", method: "POST" })];
    },
  });
  await using client = await new Listener(api).greeted();
  client.send({ type: "Subscribe", data: { filter: { method: "POST" } } });
  client.send({ type: "GetInitialTraffic", data: { limit: 10 } });
  const initial = await client.next();
  assert.deepEqual(initial.type === "InitialTraffic" ? initial.data.map(({ id }) => id) : [], ["old-post"]);
  assert.deepEqual(requested, [{}, { q: "method:POST" }]);
  api.events.traffic(added({ id: "get" }));
  api.events.traffic(added({ id: "post", method: "POST" }));
  await flush(api);
  assert.deepEqual(await client.next(), traffic(added({ id: "post", method: "POST" })));
  client.send({ type: "Subscribe", data: { filter: { q: "body:secret" } } });
  const refused = await client.next();
  assert.equal(refused.type, "Error");
  api.events.traffic(added({ id: "get2" }));
  await flush(api);
  await client.settled();
  assert.deepEqual(client.messages, [{ type: "Pong" }], "the earlier filter stays");
});

test("a filter in the address applies from the first row and event on", async () => {
  const requested: TrafficFilter[] = [];
  await using api = await startApi({
    latestRows: async (_limit, filter) => {
      requested.push(filter);
      return [row({ id: "post", method: "POST" })];
    },
  });
  await using client = new Listener(api, "/ws?method=POST&q=status:200");
  assert.equal((await client.next()).type, "Connected");
  const initial = await client.next();
  assert.deepEqual(initial.type === "InitialTraffic" ? initial.data.map(({ id }) => id) : [], ["post"]);
  assert.deepEqual(requested, [{ q: "method:POST status:200" }]);
  api.events.traffic(added({ id: "get2" }));
  api.events.traffic(added({ id: "post2", method: "POST" }));
  await flush(api);
  assert.deepEqual(await client.next(), traffic(added({ id: "post2", method: "POST" })));
});

test("an address with an inapplicable filter or unknown parameters is refused like by operations", async () => {
  await using api = await startApi();
  const table: readonly (readonly [query: string, path: string | undefined, error: RegExp])[] = [
    ["q=body:x", undefined, /no bodies/],
    ["q=status:200&colour=red", "query/colour", /unknown property/],
    ["filter=x", "query/filter", /unknown property/],
    ["method=GET&method=POST", "query/method", /more than once/],
    ["batch=1&batch=1", "query/batch", /more than once/],
    ["batch=true", "query/batch", /one of/],
    [`q=${"a".repeat(4097)}`, "query/q", /4096/],
  ];
  for (const [query, path, error] of table) {
    const refused = new WebSocket(`ws://127.0.0.1:${api.port}/api/ws?${query}`);
    refused.on("error", () => undefined);
    const [, response] = (await once(refused, "unexpected-response")) as [unknown, IncomingMessage];
    assert.equal(response.statusCode, 400, query);
    const body = (await json(response)) as { error: string; code: string; details?: { path: string }[] };
    assert.deepEqual([body.code, body.details?.[0]?.path], ["VALIDATION_ERROR", path]);
    assert.match(body.error, error);
  }
});

test("an entry that stops matching when it completes is removed", async () => {
  await using api = await startApi();
  await using client = await new Listener(api, "/ws?batch=1").greeted();
  client.send({ type: "Subscribe", data: { filter: { q: "state:pending" } } });
  await client.settled();
  client.messages.length = 0;
  api.events.traffic(added({ id: "a", state: "pending" }));
  await flush(api);
  api.events.traffic(updated({ id: "a" }));
  await flush(api);
  api.events.traffic(updated({ id: "a", modified: true }));
  await flush(api);
  await client.settled();
  assert.deepEqual(client.messages, [
    traffic(added({ id: "a", state: "pending" })),
    traffic({ type: "Deleted", data: ["a"] }),
    { type: "Pong" },
  ]);
});

test("the first rows are the newest matches, and pending ones are removed like others", async () => {
  await using directory = await temporaryDirectory();
  await using stored = await openRig(directory.path);
  await using api = await startApi({ latestRows: stored.store.latestRows.bind(stored.store) });
  const pending = stored.addAs(stored.store.nextSeq(), { path: "/a*b", state: { step: "forwarding" } });
  const wanted = ["/a*b?1", "/a*b?2"].map((path) => stored.add({ path }).id);
  for (let others = 0; others < 10; others += 1) stored.add({ path: "/axb" });
  await using client = await new Listener(api, "/ws?search=a*b").greeted();
  api.events.traffic(updated({ id: pending.id, url: "https://moved.test/" }));
  await flush(api);
  assert.deepEqual(await client.next(), traffic({ type: "Deleted", data: [pending.id] }));
  client.send({ type: "Subscribe", data: { filter: { search: "a*b" } } });
  client.send({ type: "GetInitialTraffic", data: { limit: 2 } });
  const initial = await client.next();
  assert.deepEqual(initial.type === "InitialTraffic" ? initial.data.map(({ id }) => id) : [], wanted.toReversed());
  client.send({ type: "Subscribe", data: { filter: { q: "state:pending" } } });
  client.send({ type: "GetInitialTraffic" });
  const running = await client.next();
  assert.deepEqual(running.type === "InitialTraffic" ? running.data.map(({ id }) => id) : [], [pending.id]);
  api.events.traffic(updated({ id: pending.id }));
  await flush(api);
  assert.deepEqual(await client.next(), traffic({ type: "Deleted", data: [pending.id] }));
});

test("if the filter changes while rows are fetched, they are fetched again", async () => {
  const responses = [Promise.withResolvers<TrafficSnapshot[]>(), Promise.withResolvers<TrafficSnapshot[]>()];
  const requested: TrafficFilter[] = [];
  await using api = await startApi({
    latestRows: (_limit, filter) => responses[requested.push(filter) - 1]?.promise ?? Promise.resolve([]),
  });
  await using client = new Listener(api);
  assert.equal((await client.next()).type, "Connected");
  client.send({ type: "Subscribe", data: { filter: { method: "POST" } } });
  await client.settled();
  responses[0]?.resolve([row({ id: "get" })]);
  responses[1]?.resolve([row({ id: "post", method: "POST" })]);
  assert.equal((await client.next()).type, "Pong");
  assert.deepEqual(await client.next(), { type: "InitialTraffic", data: [row({ id: "post", method: "POST" })] });
  assert.deepEqual(requested, [{}, { q: "method:POST" }]);
});

test("rows are sent even if the client repeats its subscription while they are fetched", async () => {
  const { promise, resolve } = Promise.withResolvers<TrafficSnapshot[]>();
  const requested: TrafficFilter[] = [];
  await using api = await startApi({
    latestRows: (_limit, filter) => (requested.push(filter) === 1 ? promise : new Promise(() => undefined)),
  });
  await using client = new Listener(api, "/ws?method=POST");
  assert.equal((await client.next()).type, "Connected");
  for (const filter of [{ method: "POST" }, { q: "method:POST" }]) client.send({ type: "Subscribe", data: { filter } });
  await client.settled();
  assert.equal((await client.next()).type, "Pong");
  resolve([row({ method: "POST" })]);
  assert.deepEqual(await client.next(), { type: "InitialTraffic", data: [row({ method: "POST" })] });
  assert.deepEqual(requested, [{ q: "method:POST" }]);
});

test("a maximum number of events waits for rows; a client that misses some gets their number and starts again", async () => {
  const responses = [1, 2].map(() => Promise.withResolvers<TrafficSnapshot[]>());
  let requested = 0;
  await using api = await startApi({ latestRows: () => responses[requested++]?.promise ?? Promise.resolve([]) });
  await using client = new Listener(api);
  assert.equal((await client.next()).type, "Connected");
  for (const count of [9_999, 1, 1, 1]) {
    for (let index = 0; index < count; index += 1) api.events.traffic(added({ id: `${api.clock.now()} ${index}` }));
    await flush(api);
  }
  responses[0]?.resolve([row({ id: "stored" })]);
  assert.deepEqual(await client.next(), { type: "InitialTraffic", data: [row({ id: "stored" })] });
  assert.deepEqual(await client.next(), { type: "Resync", data: { missed: 10_002 } });
  for (let index = 0; index < 10_000; index += 1) api.events.traffic(added({ id: `kept ${index}` }));
  await flush(api);
  responses[1]?.resolve([row({ id: "newer" })]);
  assert.deepEqual(await client.next(), { type: "InitialTraffic", data: [row({ id: "newer" })] });
  await waitUntil(() => client.messages.length === 10_000);
  assert.deepEqual(client.messages.at(-1), traffic(added({ id: "kept 9999" })));
});

test("an unsubscribed client receives nothing until it subscribes again", async () => {
  await using api = await startApi();
  await using client = await new Listener(api).greeted();
  client.send({ type: "Unsubscribe" });
  await client.settled();
  assert.equal(api.events.hasListeners, false);
  api.events.traffic(added());
  await flush(api);
  client.send({ type: "Subscribe" });
  await waitUntil(() => api.events.hasListeners);
  api.events.traffic(added({ id: "second" }));
  await flush(api);
  await waitUntil(() => client.messages.length === 2);
  assert.deepEqual(client.messages, [{ type: "Pong" }, traffic(added({ id: "second" }))]);
});

test("requested rows are limited, and none are sent for zero", async () => {
  const limits: number[] = [];
  await using api = await startApi({
    latestRows: async (limit) => {
      limits.push(limit);
      return [row()];
    },
  });
  await using client = await new Listener(api).greeted();
  for (const limit of [1000, 0, null]) {
    client.send({ type: "GetInitialTraffic", data: { limit } });
    const response = await client.next();
    assert.deepEqual(response, { type: "InitialTraffic", data: limit === 0 ? [] : [row()] });
  }
  assert.deepEqual(limits, [100, 1000, 100]);
});

test("events that happen while the first rows are fetched come after them", async () => {
  const { promise, resolve } = Promise.withResolvers<TrafficSnapshot[]>();
  await using api = await startApi({ latestRows: () => promise });
  await using client = new Listener(api);
  assert.equal((await client.next()).type, "Connected");
  api.events.traffic(added({ id: "early" }));
  await flush(api);
  resolve([row({ id: "stored" })]);
  assert.deepEqual(await client.next(), { type: "InitialTraffic", data: [row({ id: "stored" })] });
  assert.deepEqual(await client.next(), traffic(added({ id: "early" })));
});

test("unreadable rows are an Error, and events continue", async () => {
  await using api = await startApi({ latestRows: () => Promise.reject(new Error("disk")) });
  await using client = new Listener(api);
  assert.equal((await client.next()).type, "Connected");
  const response = await client.next();
  assert.equal(response.type, "Error");
  assert.doesNotMatch(JSON.stringify(response), /disk/);
  api.events.traffic(added());
  await flush(api);
  assert.deepEqual(await client.next(), traffic(added()));
});

test("the search for rows stops when the client disconnects", async () => {
  const search = Promise.withResolvers<TrafficSnapshot[]>();
  await using api = await startApi({
    latestRows: (_limit, _filter, signal) => {
      signal.addEventListener("abort", () => search.reject(signal.reason as Error));
      return search.promise;
    },
  });
  const client = new Listener(api);
  assert.equal((await client.next()).type, "Connected");
  client.webSocket.terminate();
  await assert.rejects(search.promise, { name: "AbortError" });
});

test("other channels require a subscription", async () => {
  await using api = await startApi();
  await using subscriber = await new Listener(api).greeted();
  await using other = await new Listener(api).greeted();
  subscriber.send({ type: "Subscribe", data: { channels: ["changes", "tasks"] } });
  await subscriber.settled();
  subscriber.messages.length = 0;
  api.events.changed("blocklist");
  const start = { id: "t", kind: "import-har", contentLength: "20" } as const;
  const result = { imported_count: 3 };
  assert.equal(
    await api.events.task(start, async (report) => {
      report({ bytes: 10, entries: 1 });
      return await Promise.resolve(result);
    }),
    result,
  );
  await subscriber.settled();
  await other.settled();
  const progress = { id: "t", kind: "import-har", bytes: 10, total_bytes: 20, entries: 1, done: false, error: null };
  assert.deepEqual(subscriber.messages, [
    { type: "Changed", data: { topic: "blocklist" } },
    { type: "Task", data: progress },
    { type: "Task", data: { ...progress, entries: 3, done: true } },
    { type: "Pong" },
  ]);
  assert.deepEqual(other.messages, [{ type: "Pong" }]);
});

test("a failed task reports the reason without hidden details, and one without an id gets one", async () => {
  await using api = await startApi();
  await using subscriber = await new Listener(api).greeted();
  subscriber.send({ type: "Subscribe", data: { channels: ["tasks"] } });
  await subscriber.settled();
  subscriber.messages.length = 0;
  const refusal = Object.assign(new Error("this is no HAR"), { name: "ImportRefusedError" });
  const failures: readonly (readonly [error: Error, received: string])[] = [
    [refusal, "this is no HAR"],
    [new Error("EIO /home/somebody/weir.db"), ERRORS.INTERNAL.message],
  ];
  for (const [error, received] of failures) {
    const start = { id: undefined, kind: "import-session", contentLength: undefined } as const;
    await assert.rejects(
      api.events.task(start, async () => await Promise.reject(error)),
      error,
    );
    await subscriber.settled();
    const [message] = subscriber.messages.splice(0);
    assert.ok(message?.type === "Task");
    const { id, ...progress } = message.data;
    assert.match(id, /^[\da-f-]{36}$/u);
    const expected = { kind: "import-session", bytes: 0, total_bytes: null, entries: 0, done: true, error: received };
    assert.deepEqual(progress, expected);
  }
});

test("a client that does not read misses events, gets their number and starts again; others miss nothing", async () => {
  await using api = await startApi({ latestRows: async () => [row({ id: "latest" })] });
  await using slow = await new Listener(api).greeted();
  await using quick = await new Listener(api).greeted();
  slow.webSocket.pause();
  const filler = "x".repeat(3000);
  const total = 6000;
  for (let count = 0; count < total; count += 1) {
    api.events.traffic(added({ id: `e${count}`, url: filler }));
    if (count % 500 === 499) {
      await flush(api);
      // Both ends live in one process: the quick one stays quick only if it gets its turn.
      await waitUntil(() => quick.messages.length === count + 1);
    }
  }
  slow.webSocket.resume();
  await waitUntil(() => slow.messages.at(-1)?.type === "InitialTraffic");
  const resync = slow.messages.find((message) => message.type === "Resync");
  assert.ok(resync?.type === "Resync");
  const got = slow.messages.filter((message) => message.type === "Traffic").length;
  assert.equal(resync.data.missed, total - got, "every event was delivered or counted");
  assert.ok(resync.data.missed > 0);
  assert.deepEqual(slow.messages.at(-1), { type: "InitialTraffic", data: [row({ id: "latest" })] });
  slow.messages.length = 0;
  api.events.traffic(added({ id: "after" }));
  await flush(api);
  assert.deepEqual(await slow.next(), traffic(added({ id: "after" })));
});

test("a message over 64 KB ends the connection with the code for it", async () => {
  await using api = await startApi();
  await using client = await new Listener(api).greeted();
  client.send(`"${"x".repeat(65_536)}"`);
  await waitUntil(() => client.closed !== undefined);
  assert.equal(client.closed?.code, 1009);
  await waitUntil(() => api.events.clientCount === 0);
});

test("a handshake from another site, to another path or above the limit is refused before the upgrade", async () => {
  await using api = await startApi({ maxClients: 1 });
  const table: readonly (readonly [string, ClientOptions, number, string])[] = [
    ["/ws", { origin: "https://evil.test" }, 403, "CROSS_SITE"],
    ["/ws", { origin: "null" }, 403, "CROSS_SITE"],
    ["/ws", { headers: { "sec-fetch-site": "cross-site" } }, 403, "CROSS_SITE"],
    ["/api/ws", { origin: `http://localhost:${api.port}` }, 403, "CROSS_SITE"],
    ["/ws", { headers: { host: "evil.test" } }, 421, "HOST_NOT_ALLOWED"],
    ["/other", {}, 404, "NOT_FOUND"],
    ["/ws/", {}, 404, "NOT_FOUND"],
  ];
  const refusal = async (path: string, options: ClientOptions): Promise<{ status: number; code: string }> => {
    const webSocket = new WebSocket(`ws://127.0.0.1:${api.port}${path}`, options);
    webSocket.on("error", () => undefined);
    const [, response] = (await once(webSocket, "unexpected-response")) as [
      unknown,
      AsyncIterable<Buffer> & { statusCode: number },
    ];
    let text = "";
    for await (const piece of response) text += String(piece);
    return { status: response.statusCode, code: (JSON.parse(text) as { code: string }).code };
  };
  for (const [path, options, status, code] of table) {
    assert.deepEqual(await refusal(path, options), { status, code }, path);
  }
  await using own = await new Listener(api, "/ws", { origin: `http://127.0.0.1:${api.port}` }).greeted();
  assert.deepEqual(await refusal("/ws", {}), { status: 503, code: "SERVICE_UNAVAILABLE" });
  await own.settled();
});

test("offers of other protocols are ignored", async () => {
  await using api = await startApi();
  const expected: readonly (readonly [string, RegExp])[] = [
    ["/ws", /^HTTP\/1\.1 426 [\s\S]*BAD_REQUEST/],
    ["/api/docs", /^HTTP\/1\.1 200 /],
  ];
  for (const [path, response] of expected) {
    await using connection = await rawClient(api.port);
    await connection.write(
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n`,
    );
    assert.match(String(await connection.collect()), response);
  }
});

test("an invalid handshake is refused like any other request", async () => {
  await using api = await startApi();
  await using connection = await rawClient(api.port);
  await connection.write(
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n",
  );
  assert.match(String(await connection.collect()), /^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*"code":"BAD_REQUEST"/);
});

test("with authentication the live socket needs credentials that may read traffic", async () => {
  const identify = (headers: Readonly<Record<string, string | string[] | undefined>>) => {
    const scope = headers["x-test-scope"];
    if (scope === "slow") return new Promise<undefined>((resolve) => setImmediate(() => resolve(undefined)));
    return typeof scope === "string" ? { name: "x", scopes: [scope] } : undefined;
  };
  await using api = await startApi({ identify });
  const refusal = async (headers: Record<string, string>): Promise<number> => {
    const webSocket = new WebSocket(`ws://127.0.0.1:${api.port}/ws`, { headers });
    webSocket.on("error", () => undefined);
    const [, response] = (await once(webSocket, "unexpected-response")) as [
      unknown,
      { statusCode: number; resume(): void },
    ];
    response.resume();
    return response.statusCode;
  };
  assert.equal(await refusal({}), 401);
  assert.equal(await refusal({ "x-test-scope": "slow" }), 401);
  assert.equal(await refusal({ "x-test-scope": "config:read" }), 403);
  await using allowed = await new Listener(api, "/ws", { headers: { "x-test-scope": "traffic:read" } }).greeted();
  await allowed.settled();
});

test("a connection reset in the middle of a handshake ends nothing else", async () => {
  await using api = await startApi({
    identify: () => new Promise((resolve) => setImmediate(() => resolve(undefined))),
  });
  for (let count = 0; count < 20; count += 1) {
    const connection = await rawClient(api.port);
    await connection.write(
      "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n",
    );
    connection.reset();
    await connection.closed;
  }
  assert.equal((await api.call("GET", "/api/docs")).status, 200);
});

test("a client that stops responding to heartbeats is disconnected, others stay", async () => {
  await using api = await startApi();
  await using alive = await new Listener(api).greeted();
  await using connection = await rawClient(api.port);
  await connection.write(
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n",
  );
  await connection.readUntil("Connected");
  const ponged = once(alive.webSocket, "ping");
  await api.clock.advance(30_000);
  await ponged;
  await alive.settled();
  await api.clock.advance(30_000);
  await waitUntil(() => api.events.clientCount === 1);
  assert.equal(alive.closed, undefined);
});

test("a stop closes connections with code 1001", async () => {
  const api = await startApi();
  const client = await new Listener(api).greeted();
  await api[Symbol.asyncDispose]();
  await waitUntil(() => client.closed !== undefined);
  assert.deepEqual(client.closed, { code: 1001, reason: "The service is stopping" });
});

test("without listeners, events are not queued", async () => {
  await using api = await startApi();
  const timers = api.clock.pendingTimers;
  for (let count = 0; count < 100; count += 1) api.events.traffic(added());
  assert.equal(api.clock.pendingTimers, timers);
  await using client = await new Listener(api).greeted();
  await flush(api);
  await client.settled();
  assert.deepEqual(client.messages, [{ type: "Pong" }]);
});
