import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import type { Breakpoint, Notice, PausedItem, PauseAll, ServerMessage } from "@headworks/capture-contract";
import { rawClient, waitUntil } from "@headworks/testkit";
import { WebSocket } from "ws";
import { ALLOW, cleared, create, endedEntry, one, paused, resume, traceOf } from "./breakpoints-rig.ts";
import type { Row } from "./breakpoints-rig.ts";
import { entryOf, startProxyRig } from "./proxy-rig.ts";

const rig = await startProxyRig();
after(() => rig[Symbol.asyncDispose]());
const proxyPort = Number(new URL(rig.proxy.addresses.proxy).port);

test("a paused request is not sent, blocks nobody else, shows as pending, and goes on when it is allowed", async () => {
  await cleared(rig);
  const id = await create(rig, { name: "Users", url_pattern: "/users", direction: "request", timeout_secs: 600 });
  const waiting = rig.send({
    method: "POST",
    path: "/users?a=1",
    headers: { "content-type": "text/plain" },
    body: "hi",
  });
  const item = await one(rig);
  assert.equal((await rig.send({ path: "/other" })).body.toString(), "echo ");
  assert.deepEqual(
    rig.seen.map(({ url }) => url),
    ["/other"],
  );
  const row = await entryOf<Row>(rig, "/users?a=1", () => true);
  assert.deepEqual([row.id, row.state], [item.entry_id, "pending"]);
  assert.deepEqual(
    [item.direction, item.rule_id, item.breakpoint_id, item.rule_name, item.position, item.response],
    ["request", id, id, "Users", 1, null],
  );
  assert.deepEqual([item.request.method, item.request.body, item.request.body_state], ["POST", "hi", "complete"]);
  assert.equal(item.request.url, `http://127.0.0.1:${rig.originPort}/users?a=1`);
  const leftMs = Date.parse(item.deadline ?? "") - Date.parse(item.paused_at);
  assert.equal(leftMs, 600_000);
  await resume(rig, item, ALLOW);
  assert.equal((await waiting).body.toString(), "echo hi");
  await paused(rig, 0);
  assert.equal((await rig.api<Breakpoint>("GET", `/breakpoints/${id}`)).hit_count, 1);
  const entry = await endedEntry(rig, "/users?a=1");
  assert.equal(entry.modified, false);
  assert.deepEqual(entry.trace, [
    { kind: "breakpoint", rule_id: id, rule_name: "Users", phase: "request", changes: [] },
  ]);
});

test("the list has heads and sizes, newest first, and bodies where they are asked for", async () => {
  await cleared(rig);
  await create(rig, { condition: { type: "all" }, direction: "request" });
  const first = rig.send({ method: "POST", path: "/1", body: "one" });
  await paused(rig, 1);
  const second = rig.send({ method: "POST", path: "/2", body: Buffer.of(0, 255) });
  await paused(rig, 2);
  const heads = await rig.api<PausedItem[]>("GET", "/breakpoints/paused");
  assert.deepEqual(
    heads.map(({ request, position }) => [request.path, request.body, request.body_size, request.body_state, position]),
    [
      ["/2", null, 2, "left_out", 2],
      ["/1", null, 3, "left_out", 1],
    ],
  );
  const whole = await rig.api<PausedItem[]>("GET", "/breakpoints/paused?include_bodies=true");
  assert.deepEqual(
    whole.map(({ request }) => [request.body, request.body_encoding]),
    [
      ["base64:AP8=", "base64"],
      ["one", "utf8"],
    ],
  );
  assert.deepEqual(await rig.api("POST", "/breakpoints/resume-all"), { resumed_count: 2 });
  await Promise.all([first, second]);
});

test("an answer is shown decoded beside its request, and passes byte for byte when it is allowed", async () => {
  const coded = brotliCompressSync(Buffer.from("grüße ".repeat(100), "latin1"));
  await cleared(rig, (_seen, response) => {
    response.writeHead(200, { "content-type": "text/plain; charset=iso-8859-1", "content-encoding": "br" });
    response.end(coded);
  });
  await create(rig, { condition: { type: "status_code", range: "2xx" }, direction: "response" });
  const waiting = rig.send({ method: "PUT", path: "/a", body: "sent" });
  const item = await one(rig);
  assert.equal(item.direction, "response");
  assert.deepEqual([item.request.body, item.response?.body], ["sent", "grüße ".repeat(100)]);
  assert.equal(item.response?.charset, "windows-1252");
  assert.equal(item.response.body_size, coded.length);
  await resume(rig, item, ALLOW);
  const response = await waiting;
  assert.deepEqual(response.body, coded);
  assert.equal(response.headers["content-encoding"], "br");
});

test("a body above the limit pauses with its head, says so, cannot be changed, and passes whole", async () => {
  const large = Buffer.alloc(300_000, "x");
  await cleared(rig, (seen, response) => response.end(String(seen.body.length)));
  await rig.api("PATCH", "/config", { breakpoint_body_limit: 1000 });
  await create(rig, { condition: { type: "all" }, direction: "request" });
  const waiting = rig.send({ method: "POST", path: "/large", body: large });
  const item = await one(rig);
  assert.deepEqual([item.request.body, item.request.body_state], [null, "too_large"]);
  await resume(rig, item, { action: "modify", body: "small" }, 409);
  await resume(rig, item, { action: "modify", path: "/renamed" });
  assert.equal((await waiting).body.toString(), "300000");
  assert.equal(rig.seen[0]?.url, "/renamed");
  await rig.api("PATCH", "/config", { breakpoint_body_limit: 5_242_880 });
});

test("a small body that unfolds beyond the limit is shown as it came", async () => {
  const bomb = gzipSync(Buffer.alloc(2_000_000));
  await cleared(rig, (_seen, response) => {
    response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
  });
  await rig.api("PATCH", "/config", { breakpoint_body_limit: 100_000 });
  await create(rig, { condition: { type: "all" }, direction: "response" });
  const waiting = rig.send();
  const item = await one(rig);
  assert.equal(item.response?.body_state, "coded");
  await resume(rig, item, ALLOW);
  assert.deepEqual((await waiting).body, bomb);
  await rig.api("PATCH", "/config", { breakpoint_body_limit: 5_242_880 });
});

test("an exchange waits as soon as its head is there, while its body still arrives", async () => {
  await cleared(rig);
  await create(rig, { condition: { type: "all" }, direction: "request" });
  const client = await rawClient(proxyPort);
  await client.write(
    `POST http://127.0.0.1:${rig.originPort}/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nConnection: close\r\n\r\nabc`,
  );
  const [early] = await waitUntil(async () => {
    const items = await rig.api<PausedItem[]>("GET", "/breakpoints/paused");
    return items.length === 1 ? items : undefined;
  });
  assert.equal(early?.request.body_state, "receiving");
  await client.write("def");
  const item = await one(rig);
  assert.equal(item.request.body, "abcdef");
  await resume(rig, item, { action: "modify", body: "changed" });
  await client.readUntil("echo changed");
  client.destroy();
});

test("events without an end pause with their head alone and stream on", async () => {
  await cleared(rig, (_seen, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: 1\n\n");
  });
  await create(rig, { condition: { type: "all" }, direction: "response" });
  const client = await rawClient(proxyPort);
  await client.write(`GET http://127.0.0.1:${rig.originPort}/events HTTP/1.1\r\nHost: x\r\n\r\n`);
  const item = await one(rig);
  assert.equal(item.response?.body_state, "stream");
  await resume(rig, item, { action: "modify", status_code: 203 });
  const text = (await client.readUntil("data: 1")).toString();
  assert.match(text, /^HTTP\/1\.1 203 /);
  client.destroy();
});

test("a client that goes away takes its exchange off the list at once, and the entry says so", async () => {
  await cleared(rig);
  await create(rig, { name: "all", condition: { type: "all" }, direction: "both" });
  for (const [path, body] of [
    ["/bare", undefined],
    ["/with-body", "hi"],
  ] as const) {
    const controller = new AbortController();
    const gone = rig.send({ method: "POST", path, ...(body === undefined ? {} : { body }), signal: controller.signal });
    const [item] = await paused(rig, 1);
    const startedMs = performance.now();
    controller.abort();
    await assert.rejects(gone);
    await paused(rig, 0);
    // A client that is only half closed is given 5 seconds.
    assert.ok(performance.now() - startedMs < 4000);
    await rig.api("POST", `/breakpoints/paused/${item?.id}/resume`, ALLOW, 404);
    assert.deepEqual((await traceOf(rig, path))[0]?.changes, ["ended while paused"]);
  }
  assert.deepEqual(rig.seen, []);
});

test("a rule's timeout lets an exchange continue by itself, and the trace says why", async () => {
  await cleared(rig);
  await create(rig, { condition: { type: "all" }, direction: "request", timeout_secs: 1 });
  const response = await rig.send({ path: "/timed" });
  assert.equal(response.status, 200);
  assert.deepEqual((await traceOf(rig, "/timed"))[0]?.changes, ["continued after 1 s without a decision"]);
});

/** Collects what people are told, from when the connection stands. */
async function heardNotices(): Promise<{ readonly notices: Notice[]; close(): void }> {
  const socket = new WebSocket(`${rig.proxy.addresses.api.replace("http", "ws")}/ws`);
  const notices: Notice[] = [];
  socket.on("message", (data: Buffer) => {
    const message = JSON.parse(data.toString()) as ServerMessage;
    if (message.type === "Notice") notices.push(message.data);
  });
  await once(socket, "open");
  return { notices, close: () => socket.close() };
}

test("editing a paused exchange holds its timer; when editing stops, it continues and all clients are told", async () => {
  await cleared(rig);
  await create(rig, { condition: { type: "all" }, direction: "request", timeout_secs: 1 });
  const heard = await heardNotices();
  const response = rig.send({ method: "POST", path: "/held", body: "x" });
  const item = await one(rig);
  const hold = async (body?: object) =>
    await rig.api<{ id: string; deadline: string }>("POST", `/breakpoints/paused/${item.id}/hold`, body);
  const held = await hold();
  assert.ok(Date.parse(held.deadline) - Date.parse(item.paused_at) >= 60_000);
  // Less time than it has takes nothing from it, and there is an end to holding.
  assert.equal((await hold({ seconds: 1 })).deadline, held.deadline);
  assert.equal(Date.parse((await hold({ seconds: 3600 })).deadline) - Date.parse(item.paused_at), 3_600_000);
  assert.equal((await one(rig)).deadline, new Date(Date.parse(item.paused_at) + 3_600_000).toISOString());
  await rig.api("POST", `/breakpoints/paused/${item.id}/hold`, { seconds: 3601 }, 400);
  await resume(rig, item, ALLOW);
  await response;
  await rig.api("POST", `/breakpoints/paused/${item.id}/hold`, {}, 404);
  assert.deepEqual(heard.notices, [], "a decision is nothing to tell");

  assert.equal((await rig.send({ path: "/expired" })).status, 200);
  const [notice] = await waitUntil(() => (heard.notices.length > 0 ? heard.notices : undefined), { what: "a notice" });
  heard.close();
  assert.ok(notice?.code === "pause-ended");
  assert.equal(notice.reason, "timeout");
  assert.equal(
    notice.message,
    `GET http://127.0.0.1:${rig.originPort}/expired continued unmodified after 1 s without a decision`,
  );
  assert.equal((await endedEntry(rig, "/expired")).id, notice.entry_id);
});

test("a held exchange is not the one that continues when too many wait", async () => {
  await cleared(rig);
  await create(rig, { condition: { type: "all" }, direction: "request" });
  const first = rig.send({ path: "/first" });
  const [item] = await paused(rig, 1);
  assert.deepEqual(await rig.api("POST", `/breakpoints/paused/${item?.id}/hold`), { id: item?.id, deadline: null });
  const second = rig.send({ path: "/second" });
  await paused(rig, 2);
  const others = Array.from({ length: 99 }, (_, index) => rig.send({ path: `/${index}` }));
  assert.equal((await second).status, 200);
  assert.deepEqual(await rig.api("POST", "/breakpoints/resume-all"), { resumed_count: 100 });
  await Promise.all([first, ...others]);
});

test("of more than a hundred that wait the oldest continues, and the trace says why", async () => {
  await cleared(rig);
  await create(rig, { condition: { type: "all" }, direction: "request" });
  const oldest = rig.send({ path: "/oldest" });
  await paused(rig, 1);
  const others = Array.from({ length: 100 }, (_, index) => rig.send({ path: `/${index}` }));
  assert.equal((await oldest).status, 200);
  await paused(rig, 100);
  assert.equal(rig.seen.length, 1);
  assert.deepEqual((await traceOf(rig, "/oldest"))[0]?.changes, [
    "continued because more than 100 exchanges were paused",
  ]);
  assert.deepEqual(await rig.api("POST", "/breakpoints/resume-all"), { resumed_count: 100 });
  await Promise.all(others);
});

test("pause-all holds what no rule matches; rules come first; resume-all lets everything flow again", async () => {
  await cleared(rig);
  const id = await create(rig, { name: "mine", url_pattern: "/mine", direction: "request" });
  await rig.api("POST", "/breakpoints/pause-all");
  const sent = [rig.send({ path: "/mine" }), rig.send({ path: "/any" })];
  const items = await paused(rig, 2);
  const rules = new Map(items.map(({ request, rule_id }) => [request.path, rule_id]));
  assert.deepEqual([rules.get("/mine"), rules.get("/any")], [id, "pause-all"]);
  assert.equal((await rig.api<PauseAll>("GET", "/breakpoints/pause-all")).paused_count, 2);
  assert.deepEqual(await rig.api("POST", "/breakpoints/resume-all", { rule_id: id, disable: true }), {
    resumed_count: 1,
  });
  await paused(rig, 1);
  assert.equal((await rig.api<Breakpoint>("GET", `/breakpoints/${id}`)).enabled, false);
  await rig.api("POST", "/breakpoints/resume-all");
  await Promise.all(sent);
  assert.equal((await rig.send({ path: "/free" })).status, 200);
});

test("a proxy that stops answers what waits, and nothing of it reaches an origin", async () => {
  await using own = await startProxyRig();
  await create(own, { condition: { type: "all" }, direction: "request" });
  const waiting = own.send({ path: "/stop" });
  await paused(own, 1);
  await own.proxy.stop(0);
  assert.equal((await waiting).status, 503);
  assert.deepEqual(own.seen, []);
});

test("listeners are notified of pauses and their ends", async () => {
  await cleared(rig);
  await create(rig, { condition: { type: "all" }, direction: "request" });
  const socket = new WebSocket(`${rig.proxy.addresses.api.replace("http", "ws")}/ws`);
  const told: string[] = [];
  socket.on("message", (data: Buffer) => {
    const { type, data: body } = JSON.parse(data.toString()) as { type: string; data?: { topic?: string } };
    if (type === "Changed") told.push(body?.topic ?? "");
  });
  await new Promise((resolve) => socket.once("open", resolve));
  socket.send(JSON.stringify({ type: "Subscribe", data: { channels: ["changes"] } }));
  socket.send(JSON.stringify({ type: "Ping" }));
  await new Promise((resolve) => socket.once("message", resolve));
  const waiting = rig.send();
  await waitUntil(() => told.length > 0, { what: "news of a pause" });
  const item = await one(rig);
  const before = told.length;
  await resume(rig, item, ALLOW);
  await waiting;
  await waitUntil(() => told.length > before, { what: "news of its end" });
  assert.deepEqual([...new Set(told)], ["breakpoints"]);
  socket.terminate();
});
