import assert from "node:assert/strict";
import { test } from "node:test";
import { WebSocket } from "ws";
import type { ServerMessage, TrafficEvent } from "@headworks/capture-contract";
import { waitUntil } from "@headworks/testkit";
import { sampleFrame } from "#storage/read/sample-exchange.ts";
import type { FrameRecord } from "#storage/streams/stream-store.ts";
import { type ApiRig, startApi } from "../../test/api-rig.ts";
import { row } from "../../test/rows.ts";
import { coalesce } from "./events.ts";

const added = (id: string, state: "pending" | "complete" = "pending"): TrafficEvent => ({
  type: "Added",
  data: row({ id, state }),
});
const updated = (id: string, state: "pending" | "complete" = "complete"): TrafficEvent => ({
  type: "Updated",
  data: row({ id, state }),
});
const deleted = (...ids: string[]): TrafficEvent => ({ type: "Deleted", data: ids });
const cleared: TrafficEvent = { type: "Cleared" };
const count = (data: number): TrafficEvent => ({ type: "CountUpdate", data });

test("a flush has one event per entry, in order, with the latest row", () => {
  const table: readonly (readonly [string, readonly TrafficEvent[], readonly TrafficEvent[]])[] = [
    ["nothing", [], []],
    [
      "added and updated is added, complete",
      [added("a"), added("b"), updated("a")],
      [added("a", "complete"), added("b")],
    ],
    ["updated twice", [updated("a", "pending"), updated("a")], [updated("a")]],
    ["deleted after added", [added("a"), added("b"), deleted("a")], [added("b"), deleted("a")]],
    ["added again after deleted", [added("a"), deleted("a"), added("a")], [deleted("a"), added("a")]],
    ["cleared drops what was before", [added("a"), deleted("x"), count(4), cleared, added("b")], [cleared, added("b")]],
    ["an update after clearing stands alone", [added("a"), cleared, updated("a")], [cleared, updated("a")]],
    ["last count only, at its position", [count(1), added("a"), count(2)], [added("a"), count(2)]],
  ];
  for (const [what, events, expected] of table) assert.deepEqual(coalesce(events), expected, what);
});

interface Listener extends AsyncDisposable {
  readonly messages: ServerMessage[];
  readonly webSocket: WebSocket;
}

async function listen(api: ApiRig, channels: readonly string[], path = "/ws"): Promise<Listener> {
  const webSocket = new WebSocket(`ws://127.0.0.1:${api.port}${path}`);
  const messages: ServerMessage[] = [];
  webSocket.on("message", (data) => {
    const parsed = JSON.parse((data as Buffer).toString()) as ServerMessage | ServerMessage[];
    messages.push(...(Array.isArray(parsed) ? parsed : [parsed]));
  });
  await waitUntil(() => messages.length === 2);
  webSocket.send(JSON.stringify({ type: "Subscribe", data: { channels } }));
  webSocket.send("ping");
  await waitUntil(() => messages.length === 3);
  messages.length = 0;
  return {
    messages,
    webSocket,
    [Symbol.asyncDispose]: async () => {
      webSocket.terminate();
      await waitUntil(() => webSocket.readyState === webSocket.CLOSED);
    },
  };
}

const STREAM = { id: "0193-stream", kind: "websocket" } as const;

const frame = (text: string, change: Partial<FrameRecord> = {}): FrameRecord =>
  sampleFrame(text, { direction: "receive", wireBytes: Buffer.byteLength(text) + 2, ...change });

test("frames reach only their subscribers, within one flush", async () => {
  await using api = await startApi();
  await using watching = await listen(api, ["frames"]);
  await using batched = await listen(api, ["frames", "changes"], "/ws?batch=1");
  await using other = await listen(api, ["changes"]);
  api.events.frame(STREAM, 1, frame("ü".repeat(1200), { effect: "modified", attributes: { id: "7" } }));
  api.events.frame(STREAM, 2, frame("\u0000", { type: "binary", direction: "send", opcode: 2 }));
  await api.clock.advance(50);
  await waitUntil(() => watching.messages.length === 2 && batched.messages.length === 2);
  const expected: ServerMessage = {
    type: "Frame",
    data: {
      stream_id: "0193-stream",
      ordinal: 1,
      kind: "websocket",
      direction: "receive",
      type: "text",
      size: 2400,
      text: "ü".repeat(1000),
      timestamp: "2025-11-21T04:40:00.000Z",
      effect: "modified",
      attributes: { id: "7" },
    },
  };
  assert.deepEqual(watching.messages[0], expected);
  assert.deepEqual(batched.messages[0], expected);
  const [, second] = watching.messages;
  assert.deepEqual(second?.type === "Frame" && [second.data.text, second.data.size], [null, 1]);
  assert.deepEqual(other.messages, []);
});

test("a flush has a maximum number of frames and reports the dropped ones", async () => {
  await using api = await startApi();
  await using watching = await listen(api, ["frames"]);
  for (let index = 1; index <= 4100; index += 1) api.events.frame(STREAM, index, frame(String(index)));
  await api.clock.advance(50);
  await waitUntil(() => watching.messages.length === 4001);
  assert.deepEqual(watching.messages.at(-1), { type: "Resync", data: { missed: 100, channel: "frames" } });
});

test("clients that unsubscribe or disconnect get no more frames", async () => {
  await using api = await startApi();
  await using watching = await listen(api, ["frames"]);
  watching.webSocket.send(JSON.stringify({ type: "Subscribe", data: { channels: [] } }));
  watching.webSocket.send("ping");
  await waitUntil(() => watching.messages.length === 1);
  api.events.frame(STREAM, 1, frame("unseen"));
  await api.clock.advance(50);
  watching.webSocket.send("ping");
  await waitUntil(() => watching.messages.length === 2);
  assert.deepEqual(
    watching.messages.map(({ type }) => type),
    ["Pong", "Pong"],
  );
});
