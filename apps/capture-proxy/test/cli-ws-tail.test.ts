import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { FrameEvent, ServerMessage } from "@headworks/capture-contract";
import { waitUntil } from "@headworks/testkit";
import { WebSocket, WebSocketServer } from "ws";
import type { MessageSocket } from "#cli/invocation.ts";
import { textWidth } from "#cli/terminal.ts";
import { frameLine } from "#cli/ws-tail.ts";
import { runInside, serveWeir, startWeir, window } from "./cli-rig.ts";
import { TunnelAgent } from "./websocket-rig.ts";

function frame(changes: Partial<FrameEvent> = {}): FrameEvent {
  return {
    stream_id: "0193f5a0-0000-7000-8000-00009f2a61c4",
    ordinal: 1,
    kind: "websocket",
    direction: "send",
    type: "text",
    size: 5,
    text: "hello",
    timestamp: "2026-01-01T00:00:00.250Z",
    ...changes,
  };
}

const told = (changes: Partial<FrameEvent> = {}): ServerMessage => ({ type: "Frame", data: frame(changes) });

/** A service's socket that says this when it is subscribed to, and ends. */
function scripted(frames: readonly (ServerMessage | readonly ServerMessage[])[], sent: string[] = []): MessageSocket {
  let close: (reason: string) => void = () => undefined;
  let message: (text: string) => void = () => undefined;
  return {
    onOpen: (listener) => void setImmediate(listener),
    onMessage: (listener) => (message = listener),
    onClose: (listener) => (close = listener),
    send: (text) => {
      sent.push(text);
      for (const each of frames) message(JSON.stringify(each));
      setImmediate(() => close("The service is stopping"));
    },
    close: () => close("closed"),
  };
}

async function followed(args: readonly string[], socket: MessageSocket) {
  const urls: string[] = [];
  const openSocket = async (url: string): Promise<MessageSocket> => {
    urls.push(url);
    return await Promise.resolve(socket);
  };
  const result = await runInside(["ws", "tail", ...args], { parts: { openSocket } });
  return { ...result, urls, lines: result.stdout.split("\n").filter((line) => line !== "") };
}

const ORDINALS: readonly (readonly [args: readonly string[], ordinals: readonly number[]])[] = [
  [[], [1, 2, 4]],
  [["--direction", "receive"], [2]],
  [
    ["-s", "HELL"],
    [1, 2],
  ],
  [["-d", "send", "--search", "hell"], [1]],
];
for (const [args, ordinals] of ORDINALS) {
  test(`weir ws tail ${args.join(" ")} shows the messages that are asked for, one line each`, async () => {
    const { lines, code } = await followed(
      ["--json", ...args],
      scripted([
        { type: "Connected", data: { client_id: "x" } },
        told(),
        [told({ ordinal: 2, direction: "receive" }), told({ ordinal: 3, kind: "sse" })],
        told({ ordinal: 4, type: "binary", text: null }),
      ]),
    );
    assert.deepEqual(
      lines.map((line) => (JSON.parse(line) as FrameEvent).ordinal),
      ordinals,
    );
    assert.equal(code, 1);
  });
}

test("only frames are subscribed to, and the end of the service is said in a sentence", async () => {
  const sent: string[] = [];
  const { stderr, code, urls } = await followed([], scripted([], sent));
  assert.deepEqual(
    sent.map((text) => JSON.parse(text) as unknown),
    [{ type: "Subscribe", data: { filter: { q: "seq:<0" }, channels: ["frames"] } }],
  );
  assert.deepEqual(urls, ["ws://127.0.0.1:3001/ws?batch=1&q=seq%3A%3C0"]);
  assert.deepEqual([code, stderr], [1, "weir: Connection to Weir lost (The service is stopping)\n"]);
});

test("what came faster than it was read is told, and a stranger at the address is named", async () => {
  const missed = await followed([], scripted([{ type: "Resync", data: { missed: 7, channel: "frames" } }]));
  assert.match(missed.stderr, /7 messages were missed/);
  const stranger = await followed([], scripted([[null as unknown as ServerMessage]]));
  assert.match(stranger.stderr, /does not speak the protocol of Weir's live feed/);
  assert.equal(stranger.code, 1);
});

test("without a service the command says how to start one", async () => {
  const dead: MessageSocket = {
    ...scripted([]),
    onOpen: () => undefined,
    onClose: (ended) => void setImmediate(() => ended("refused")),
  };
  assert.match((await followed([], dead)).stderr, /No Weir is running at .* start it with `weir serve`/);
});

test("a direction that there is not is refused", async () => {
  const { code, stderr } = await runInside(["ws-traffic", "tail", "-d", "up"]);
  assert.equal(code, 2);
  assert.match(stderr, /send, receive/);
});

test("a line is cut to the window and holds no control characters", () => {
  const hostile = frame({ text: `\u001b[2J\n${"日".repeat(300)}`, type: "te\u0007xt", effect: "modified" });
  for (const columns of [60, 80, 120, 200]) {
    for (const showsConnection of [true, false]) {
      const line = frameLine(hostile, window(columns), showsConnection);
      assert.ok(textWidth(line) <= columns, `${textWidth(line)} > ${columns}`);
      assert.doesNotMatch(line, /[\x00-\x1f\x7f-\x9f]/);
    }
  }
  const plain = frameLine(frame({ direction: "receive" }), window(100), true);
  assert.match(plain, /^\d\d:\d\d:\d\d\.250 ← text +5 B {2}…9f2a61c4 {2}hello$/);
  assert.match(frameLine(frame(), window(200), true), /0193f5a0-0000-7000-8000-00009f2a61c4 {2}hello$/);
  assert.doesNotMatch(frameLine(frame({ type: "close", text: "\u0003\ufffdbye" }), window(100), false), /bye/);
});

test("tail follows the connections of a real service and ends well with Ctrl+C", async () => {
  const server = createServer();
  const echo = new WebSocketServer({ server });
  echo.on("connection", (socket) => socket.on("message", (data) => socket.send(data, { binary: false })));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await using served = await serveWeir();
  const { port } = server.address() as AddressInfo;
  const agent = new TunnelAgent(Number(new URL(served.proxy).port));
  const client = new WebSocket(`ws://127.0.0.1:${port}/chat`, { agent });
  await once(client, "open");
  await using child = await startWeir(["ws", "tail", "--json", "-d", "receive", "--api-url", served.api]);
  // It subscribes some time after it started: one of the messages is the first that it is told of.
  const speaking = setInterval(() => client.send("are you there"), 100);
  const [line] = await child.waitForOutput(/^\{.*\}$/m, 20_000);
  clearInterval(speaking);
  const shown = JSON.parse(line) as FrameEvent;
  assert.deepEqual([shown.kind, shown.direction, shown.text], ["websocket", "receive", "are you there"]);
  assert.equal((await child.stop("SIGINT")).code, 130);
  await using other = await startWeir(["ws", "tail", shown.stream_id, "--api-url", served.api]);
  const again = setInterval(() => client.send("still here"), 100);
  await other.waitForOutput(/still here$/m, 20_000);
  clearInterval(again);
  // A connection that is open when the service is asked to stop gets seconds to end.
  client.terminate();
  await waitUntil(() => echo.clients.size === 0);
  await served.process.stop();
  const { code, stderr } = await other.exited;
  assert.equal(code, 1);
  assert.match(stderr, /^weir: Connection to Weir lost/m);
  server.close();
});

test("a connection that is not there, or over, is told at once", async () => {
  const responses: readonly (readonly [status: number, body: object, said: RegExp])[] = [
    [404, { error: "There is no connection x", code: "NOT_FOUND" }, /There is no connection x/],
    [200, { id: "x", state: "closed" }, /The connection is closed; `weir ws messages --connection-id x` lists/],
  ];
  for (const [status, body, said] of responses) {
    const server = createServer((_request, response) => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { code, stderr } = await runInside(["ws", "tail", "x", "--api-url", api]);
    assert.equal(code, 1);
    assert.match(stderr, said);
    server.close();
  }
});
