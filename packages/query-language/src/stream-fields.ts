import type { Field } from "./fields.ts";
import type { Direction } from "./record.ts";

/** Both ways a message can go. */
export const DIRECTIONS: readonly Direction[] = ["in", "out"];

/** What is asked of the messages of streams, and of how a call ended. */
export const STREAM_FIELDS: readonly Field[] = [
  {
    name: "grpc.status",
    phrase: "the status of the gRPC call",
    reads: "stream",
    value: { type: "number", unit: "grpcStatus", column: "grpcStatus", read: (r) => r.grpcStatus },
  },
  {
    name: "ws.text",
    phrase: "a WebSocket message",
    reads: "messages",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      floating: true,
      implies: "webSocketMessages",
      read: (r) => [...(r.webSocketTexts?.(DIRECTIONS) ?? [])],
    },
  },
  {
    name: "dir",
    phrase: "the direction of a stream's message",
    reads: "stream",
    value: {
      type: "text",
      literal: "equals",
      fold: "ascii",
      caseless: true,
      columns: ["incoming", "outgoing"],
      choices: DIRECTIONS,
      aliases: { receive: "in", received: "in", send: "out", sent: "out" },
      read: (r) => [r.incoming, r.outgoing].filter((direction) => direction !== undefined),
    },
  },
];
