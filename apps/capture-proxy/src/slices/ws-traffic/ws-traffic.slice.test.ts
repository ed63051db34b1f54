import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";
import type { WsConnection, WsMessage, WsPaused, WsRule, WsStats } from "@headworks/capture-contract";
import { waitUntil } from "@headworks/testkit";
import { startWebSocketRig } from "../../../test/websocket-rig.ts";
import type { WebSocketRig } from "../../../test/websocket-rig.ts";

const messagesOf = async (rig: WebSocketRig, query: string): Promise<WsMessage[]> =>
  await rig.api<WsMessage[]>("GET", `/ws-traffic/messages?${query}`);

async function messages(rig: WebSocketRig, query: string, count: number): Promise<WsMessage[]> {
  let found: WsMessage[] = [];
  await waitUntil(async () => {
    found = await messagesOf(rig, query);
    return found.length >= count;
  });
  assert.equal(found.length, count);
  return found;
}

const rule = async (rig: WebSocketRig, body: object): Promise<string> =>
  (await rig.api<{ id: string }>("POST", "/ws-traffic/rules", body, 201)).id;

const texts = (list: readonly WsMessage[]): string[] =>
  list.map(
    ({ direction, message_type: type, payload, effect }) =>
      `${direction} ${type} ${payload.text ?? payload.raw_base64}${effect === null ? "" : ` ${effect}`}`,
  );

test("a connection and its messages are listed while it is open and afterwards", async () => {
  await using rig = await startWebSocketRig({ handleProtocols: () => "chat.v1", perMessageDeflate: false });
  const { client, server, id } = await rig.open({ headers: { "X-A": "1" } }, ["chat.v1"]);
  client.socket.send('{"hello": [1]}');
  server.socket.send(Buffer.from([1, 255]));
  client.socket.ping("p");
  const seen = await messages(rig, `connection_id=${id}`, 4);
  const [text, binary] = [
    seen.find((one) => one.message_type === "text"),
    seen.find((one) => one.message_type === "binary"),
  ];
  assert.deepEqual(text?.payload, { text: '{"hello": [1]}', json: { hello: [1] }, size: 14 });
  assert.equal(text?.direction, "send");
  assert.equal(typeof text?.mask, "number");
  assert.deepEqual(
    [text?.opcode, text?.is_final, text?.compressed, text?.effect, text?.truncated],
    [1, true, false, null, false],
  );
  assert.deepEqual(binary?.payload, { raw: [1, 255], raw_base64: "Af8=", size: 2 });
  assert.equal("mask" in (binary ?? {}), false);
  const found = async (q: string): Promise<readonly string[]> =>
    (await rig.api<{ id: string }[]>("GET", `/traffic?q=${encodeURIComponent(q)}`)).map((entry) => entry.id);
  assert.deepEqual(await found("ws.text:HELLO dir:out"), [id]);
  assert.deepEqual(await found("ws.text:hello dir:in"), []);
  const open = await rig.api<WsConnection>("GET", `/ws-traffic/connections/${id}`);
  assert.deepEqual(
    [
      open.state,
      open.path,
      open.subprotocol,
      open.can_send,
      open.closed_at,
      open.request_headers["X-A"],
      open.response_headers["Upgrade"],
    ],
    ["open", "/chat", "chat.v1", true, null, "1", "websocket"],
  );
  client.socket.close(4000, "done");
  await waitUntil(async () => (await rig.api<WsConnection>("GET", `/ws-traffic/connections/${id}`)).state === "closed");
  const closed = await rig.api<WsConnection>("GET", `/ws-traffic/connections/${id}`);
  assert.deepEqual(
    [closed.close_code, closed.close_reason, closed.can_send, closed.messages_sent, closed.messages_received],
    [4000, "done", false, 3, 3],
  );
  assert.ok(closed.closed_at);
  const entry = await rig.api<{ response: { status_code: number } }>("GET", `/traffic/${id}`);
  assert.equal(entry.response.status_code, 101);
  await rig.api("GET", "/ws-traffic/connections/unknown", undefined, 404);
});

test("RFC 6455 7.1.5: a connection that ends without a close frame has code 1006 and a reason", async () => {
  await using rig = await startWebSocketRig();
  const ends: readonly (readonly [how: "end" | "resetAndDestroy", side: "client" | "server", reason: RegExp])[] = [
    ["end", "client", /^The connection ended without a close frame$/],
    ["end", "server", /^The connection ended without a close frame$/],
    ["resetAndDestroy", "client", /^The client reset the tunnel$/],
    ["resetAndDestroy", "server", /^The origin reset the tunnel/],
  ];
  for (const [how, side, reason] of ends) {
    const { [side]: end, id } = await rig.open();
    (end.socket as unknown as { readonly _socket: Socket })._socket[how]();
    const closed = await waitUntil(async () => {
      const found = await rig.api<WsConnection>("GET", `/ws-traffic/connections/${id}`);
      return found.state === "closed" ? found : undefined;
    });
    assert.equal(closed.close_code, 1006, `${side} ${how}`);
    assert.match(closed.close_reason ?? "", reason, `${side} ${how}`);
  }
});

test("messages are filtered by direction, type and text, counted and cleared", async () => {
  await using rig = await startWebSocketRig();
  const { client, server, id } = await rig.open();
  for (let index = 1; index <= 30; index += 1) client.socket.send(`Message ${index}`);
  server.socket.send("an Answer");
  await messages(rig, `connection_id=${id}`, 31);
  assert.deepEqual(texts(await messagesOf(rig, "direction=receive")), ["receive text an Answer"]);
  assert.deepEqual(texts(await messagesOf(rig, "search=message%203&limit=1&offset=1")), ["send text Message 30"]);
  assert.deepEqual(await messagesOf(rig, "message_type=binary"), []);
  const stats = await rig.api<WsStats>("GET", "/ws-traffic/stats");
  assert.deepEqual(
    [stats.connections, stats.open_connections, stats.messages_sent, stats.messages_received, stats.by_type],
    [1, 1, 30, 1, { text: 31 }],
  );
  await rig.api("POST", "/ws-traffic/clear", undefined, 204);
  assert.deepEqual(await messagesOf(rig, ""), []);
  assert.equal((await rig.api<WsConnection[]>("GET", "/ws-traffic/connections")).length, 1);
  client.socket.send("after");
  assert.deepEqual(texts(await messages(rig, "", 1)), ["send text after"]);
  await rig.api("GET", "/ws-traffic/messages?foo=1", undefined, 400);
});

test("a fragmented message is shown as its frames and joined", async () => {
  await using rig = await startWebSocketRig();
  const { client, server, id } = await rig.open();
  client.socket.send("one ", { fin: false });
  client.socket.ping();
  client.socket.send("two ", { fin: false });
  client.socket.send("three", { fin: true });
  const seen = await messages(rig, `connection_id=${id}&direction=send`, 4);
  assert.deepEqual(texts(seen), ["send text one ", "send ping ", "send continuation two ", "send continuation three"]);
  assert.deepEqual([seen[3]?.fragments, seen[3]?.joined], [3, { text: "one two three", size: 13 }]);
  await waitUntil(() => server.messages.includes("one two three"));
});

test("compressed messages are readable, in one frame and in several", async () => {
  await using rig = await startWebSocketRig({ perMessageDeflate: { threshold: 0 } });
  const { client, server, id } = await rig.open({ perMessageDeflate: { threshold: 0 } });
  client.socket.send("again and again and again");
  client.socket.send("again and ", { fin: false });
  client.socket.send("again", { fin: true });
  server.socket.send("from the server");
  const seen = await messages(rig, `connection_id=${id}&direction=send`, 3);
  assert.deepEqual([seen[0]?.payload.text, seen[0]?.compressed], ["again and again and again", true]);
  assert.equal(seen[2]?.joined?.text, "again and again");
  assert.equal((await messages(rig, `connection_id=${id}&direction=receive`, 1))[0]?.payload.text, "from the server");
  assert.match(
    (await rig.api<WsConnection>("GET", `/ws-traffic/connections/${id}`)).extensions ?? "",
    /^permessage-deflate/,
  );
});

test("injected messages reach either side, and closing closes both sides", async () => {
  await using rig = await startWebSocketRig();
  const { client, server, id } = await rig.open();
  const send = async (body: object, status = 204) =>
    await rig.api("POST", `/ws-traffic/connections/${id}/send`, body, status);
  await send({ text: "to the server" });
  await send({ direction: "receive", text: "to the client" });
  await send({ direction: "receive", base64: "AQI=" });
  await send({ message_type: "ping", text: "are you there" });
  await waitUntil(() => server.messages.length === 2 && client.messages.length >= 2);
  assert.deepEqual(server.messages, ["to the server", "ping:are you there"]);
  assert.deepEqual(client.messages.slice(0, 2), ["to the client", "base64:AQI="]);
  const seen = await messages(rig, `connection_id=${id}`, 5);
  assert.equal(seen.filter(({ effect }) => effect === "injected").length, 4, "and the server's pong");
  await send({ text: "a", base64: "AQI=" }, 400);
  await send({ base64: "%%%" }, 400);
  await send({ message_type: "text", base64: "/w==" }, 400);
  await send({ message_type: "ping", text: "x".repeat(126) }, 400);
  await rig.api("POST", `/ws-traffic/connections/${id}/close`, { code: 1005 }, 400);
  await rig.api("POST", `/ws-traffic/connections/${id}/close`, { code: 4321, reason: "enough" }, 204);
  await waitUntil(() => client.closed.length === 1 && server.closed.length === 1);
  assert.deepEqual([client.closed, server.closed], [["4321 enough"], ["4321 enough"]]);
  await waitUntil(async () => (await rig.api<WsConnection>("GET", `/ws-traffic/connections/${id}`)).state === "closed");
  await send({ text: "too late" }, 409);
  await rig.api("POST", `/ws-traffic/connections/${id}/close`, undefined, 409);
  await rig.api("POST", "/ws-traffic/connections/unknown/send", { text: "x" }, 404);
});

test("a close reason of more than 123 bytes is rejected, regardless of its characters; one of 123 arrives whole", async () => {
  await using rig = await startWebSocketRig();
  const { client, server, id } = await rig.open();
  const path = `/ws-traffic/connections/${id}/close`;
  for (const reason of ["é".repeat(62), "x".repeat(124)]) {
    const { details } = await rig.api<{ details: { path: string; message: string }[] }>("POST", path, { reason }, 400);
    assert.equal(details[0]?.path, "body/reason");
    assert.match(details[0].message, /123/);
  }
  const reason = `${"é".repeat(61)}x`;
  await rig.api("POST", path, { reason }, 204);
  await waitUntil(() => client.closed.length === 1 && server.closed.length === 1);
  assert.deepEqual([client.closed, server.closed], [[`1000 ${reason}`], [`1000 ${reason}`]]);
});

test("rules replace, drop and delay messages of open connections as soon as they are created", async () => {
  await using rig = await startWebSocketRig();
  const { client, server, id } = await rig.open();
  client.socket.send("secret 0");
  await waitUntil(() => server.messages.length === 1);
  const replacing = await rule(rig, {
    match: { text: "secret (\\d)" },
    action: { type: "replace", replacement: "<$1>" },
  });
  const dropping = await rule(rig, { match: { direction: "receive", text: "^spam" }, action: { type: "drop" } });
  await rule(rig, { match: { text: "slow" }, action: { type: "delay", delay_ms: 20 } });
  await rule(rig, { match: { host: "other.example" }, action: { type: "drop" } });
  await rule(rig, { match: { url: "/nowhere" }, action: { type: "drop" } });
  for (const text of ["secret 1", "spam", "slow secret 2", "plain"]) client.socket.send(text);
  for (const text of ["spam", "secret 3"]) server.socket.send(text);
  await waitUntil(() => server.messages.length === 5 && client.messages.length === 1);
  assert.deepEqual(server.messages, ["secret 0", "<1>", "spam", "slow <2>", "plain"]);
  assert.deepEqual(client.messages, ["<3>"]);
  const seen = await messages(rig, `connection_id=${id}`, 7);
  assert.deepEqual(texts(seen.filter(({ effect }) => effect !== null)).sort(), [
    "receive text <3> modified",
    "receive text spam dropped",
    "send text <1> modified",
    "send text slow <2> modified",
  ]);
  assert.equal(seen.find(({ payload }) => payload.text === "<1>")?.original?.text, "secret 1");
  assert.equal((await rig.api<WsRule>("GET", `/ws-traffic/rules/${replacing}`)).hit_count, 3);
  assert.deepEqual(await rig.api("POST", `/ws-traffic/rules/${dropping}/toggle`), { id: dropping, enabled: false });
  server.socket.send("spam");
  await waitUntil(() => client.messages.length === 2);
});

test("paused messages are continued, edited or dropped", async () => {
  await using rig = await startWebSocketRig();
  const { client, server, id } = await rig.open();
  const ruleId = await rule(rig, { name: "Look", match: { text: "^wait" }, action: { type: "pause" } });
  for (const text of ["wait 1", "wait 2", "wait 3", "behind"]) client.socket.send(text);
  const next = async (text: string): Promise<WsPaused> => {
    let found: WsPaused | undefined;
    await waitUntil(async () => {
      [found] = await rig.api<WsPaused[]>("GET", "/ws-traffic/paused");
      return found?.payload.text === text;
    });
    assert.ok(found);
    return found;
  };
  const first = await next("wait 1");
  assert.deepEqual(
    [first.connection_id, first.rule_id, first.rule_name, first.direction, first.message_type],
    [id, ruleId, "Look", "send", "text"],
  );
  const resume = async ({ id: pausedId }: WsPaused, body: object, status = 204) =>
    await rig.api("POST", `/ws-traffic/paused/${pausedId}/resume`, body, status);
  await resume(first, { action: "modify" }, 400);
  await resume(first, { action: "allow" });
  await resume(first, { action: "allow" }, 404);
  await resume(await next("wait 2"), { action: "modify", text: "changed" });
  await resume(await next("wait 3"), { action: "drop" });
  await waitUntil(() => server.messages.length === 3);
  assert.deepEqual(server.messages, ["wait 1", "changed", "behind"]);
  client.socket.send("wait for ever");
  await next("wait for ever");
  await rig.api("POST", `/ws-traffic/connections/${id}/close`, undefined, 204);
  await waitUntil(async () => (await rig.api<WsPaused[]>("GET", "/ws-traffic/paused")).length === 0);
  assert.equal(server.messages.length, 3);
});

test("rules are created, read, updated with their own representation, listed newest first, deleted", async () => {
  await using rig = await startWebSocketRig();
  const body = {
    name: "A",
    match: { host: "*.example.com", direction: "send" },
    action: { type: "delay", delay_ms: 5 },
  };
  const id = await rule(rig, body);
  const other = await rule(rig, { action: { type: "drop" } });
  const read = await rig.api<WsRule>("GET", `/ws-traffic/rules/${id}`);
  assert.deepEqual(
    { ...read, created_at: "", updated_at: "" },
    { id, enabled: true, hit_count: 0, ...body, created_at: "", updated_at: "" },
  );
  assert.deepEqual(
    (await rig.api<WsRule[]>("GET", "/ws-traffic/rules")).map((one) => [one.id, one.name]),
    [
      [other, "Drop"],
      [id, "A"],
    ],
  );
  const updated = await rig.api<WsRule>("PUT", `/ws-traffic/rules/${id}`, { ...read, enabled: false });
  assert.equal(updated.enabled, false);
  await rig.api("DELETE", `/ws-traffic/rules/${id}`, undefined, 204);
  await rig.api("GET", `/ws-traffic/rules/${id}`, undefined, 404);
  await rig.api("PUT", `/ws-traffic/rules/${id}`, body, 404);
});

test("invalid rules are rejected with the field's path", async () => {
  await using rig = await startWebSocketRig();
  const table: readonly [object, string][] = [
    [{}, "body"],
    [{ action: { type: "explode" } }, "body/action"],
    [{ action: { type: "delay" } }, "body/action"],
    [{ action: { type: "drop" }, match: { text: "(" } }, "body/match/text"],
    [{ action: { type: "drop" }, match: { url: "[" } }, "body/match/url"],
    [{ action: { type: "drop" }, match: { host: "a b" } }, "body/match/host"],
    [{ action: { type: "drop" }, match: { message_type: "ping", text: "x" } }, "body/match/text"],
    [{ action: { type: "replace", replacement: "x" }, match: { message_type: "binary" } }, "body/match/message_type"],
    [{ action: { type: "replace", find: "(", replacement: "x" } }, "body/action/find"],
    [{ action: { type: "replace", find: "a", replacement: "$<no>" } }, "body/action/replacement"],
    [{ action: { type: "drop" }, foo: 1 }, "body"],
  ];
  for (const [body, path] of table) {
    const response = await rig.api<{ code: string; details: { path: string }[] }>(
      "POST",
      "/ws-traffic/rules",
      body,
      400,
    );
    assert.equal(response.code, "VALIDATION_ERROR");
    assert.ok(response.details[0]?.path.startsWith(path), `${JSON.stringify(body)}: ${response.details[0]?.path}`);
  }
});

test("rules are exported and imported with the bundle of all rules", async () => {
  await using rig = await startWebSocketRig();
  await rule(rig, { match: { text: "a" }, action: { type: "replace", replacement: "b" } });
  const before = await rig.api<WsRule[]>("GET", "/ws-traffic/rules");
  const bundle = await rig.api<{ sections?: object }>("GET", "/config/export");
  await rig.api("DELETE", `/ws-traffic/rules/${before[0]?.id}`, undefined, 204);
  await rig.api("POST", "/config/import", bundle);
  assert.deepEqual(await rig.api<WsRule[]>("GET", "/ws-traffic/rules"), before);
});
