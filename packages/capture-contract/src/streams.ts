import { defineOperations, media, nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { HeadersList } from "./message.ts";
import { COUNTED, EntryId, EntryIdParams, Id, Timestamp } from "./primitives.ts";

export const STREAM_KINDS = ["websocket", "sse", "json", "grpc"] as const;
export const StreamKind = oneOf([...STREAM_KINDS], {
  description: "`sse`: server-sent events; `json`: items of JSON that follow each other",
});
export type StreamKind = Static<typeof StreamKind>;

export const FRAME_TYPES = [
  "text",
  "binary",
  "ping",
  "pong",
  "close",
  "continuation",
  "event",
  "item",
  "message",
  "trailer",
] as const;
export const FrameType = oneOf([...FRAME_TYPES]);
export type FrameType = Static<typeof FrameType>;

export const FrameDirection = oneOf(["send", "receive"], { description: "`send`: from the client" });
export type FrameDirection = Static<typeof FrameDirection>;

const Attributes = Type.Record(Type.String(), Type.String());

const streamProperties = {
  id: Type.String({ description: "Id of its traffic entry" }),
  kind: StreamKind,
  session_id: Id,
  state: oneOf(["connecting", "open", "closing", "closed"]),
  method: Type.String(),
  url: Type.String(),
  host: Type.String(),
  path: Type.String({ description: "Path and query" }),
  client_addr: nullable(Type.String()),
  server_addr: nullable(Type.String()),
  subprotocol: nullable(Type.String()),
  close_code: nullable(
    Type.Integer({
      description: "Close code of a WebSocket, 1006 without a close frame; status of a gRPC call",
    }),
  ),
  close_reason: nullable(Type.String({ description: "Why it ended, if known" })),
  attributes: Type.Record(Type.String(), Type.String(), { description: "Further properties, by the kind of stream" }),
  created_at: Timestamp,
  closed_at: nullable(Timestamp),
  frames_sent: Type.Integer(),
  frames_received: Type.Integer(),
  bytes_sent: Type.Integer({ description: "Bytes of payloads, uncompressed" }),
  bytes_received: Type.Integer(),
  frames_stored: Type.Integer(),
  frames_not_stored: Type.Integer({
    description: "Passed on but not stored, because of load or `max_total_size_mb`",
  }),
};

/** A stream as a row of a list. Counts are of what flowed, stored or not. */
export const StreamSummary = strictObject(streamProperties, { $id: "StreamSummary" });
export type StreamSummary = Static<typeof StreamSummary>;

/** A stream with the fields of its request and response. */
export const StreamDetail = strictObject(
  { ...streamProperties, request_headers: HeadersList, response_headers: nullable(HeadersList) },
  { $id: "StreamDetail" },
);
export type StreamDetail = Static<typeof StreamDetail>;

export const StreamFrame = strictObject(
  {
    stream_id: Type.String(),
    ordinal: Type.Integer({ description: "Number in its stream, from 1 on" }),
    kind: StreamKind,
    direction: FrameDirection,
    type: FrameType,
    opcode: Type.Integer({ description: "WebSocket only; otherwise 0" }),
    is_final: Type.Boolean(),
    timestamp: Timestamp,
    text: nullable(
      Type.String({
        description: "Start of the payload if it is text; code and reason of a close frame: `1000 Normal Closure: bye`",
      }),
    ),
    base64: nullable(Type.String({ description: "Start of the payload if it is not text, and of close frames" })),
    size: Type.Integer({ description: "Bytes of the payload, uncompressed" }),
    stored_size: Type.Integer({ description: "Bytes stored" }),
    preview_size: Type.Integer({ description: "Bytes included here" }),
    wire_size: Type.Integer({ description: "Bytes as received" }),
    compressed: Type.Boolean(),
    mask: nullable(Type.Integer()),
    effect: nullable(oneOf(["injected", "modified", "dropped"], { description: "Effect of rules" })),
    original_text: nullable(Type.String({ description: "Start of the original payload, before a rule changed it" })),
    original_base64: nullable(Type.String()),
    attributes: Attributes,
  },
  { $id: "StreamFrame" },
);
export type StreamFrame = Static<typeof StreamFrame>;

const ChatChoice = strictObject({
  index: Type.Integer(),
  text: Type.String(),
  reasoning: Type.String({ description: "Reasoning of the model, as far as the provider shows it" }),
  refusal: Type.String(),
  tool_calls: Type.Array(
    strictObject({
      id: nullable(Type.String()),
      name: Type.String(),
      arguments: Type.String({ description: "Assembled from its parts" }),
    }),
  ),
  finish_reason: nullable(Type.String({ description: "In the provider's words" })),
});

const ChatUsage = strictObject({
  input_tokens: nullable(Type.Integer()),
  output_tokens: nullable(Type.Integer()),
  total_tokens: nullable(Type.Integer()),
  cached_input_tokens: nullable(Type.Integer()),
  reasoning_tokens: nullable(Type.Integer()),
});

/** A chat-completion stream put together. */
export const AssembledChat = strictObject(
  {
    format: oneOf(["openai-chat", "openai-responses", "anthropic", "google", "ollama"]),
    id: nullable(Type.String()),
    model: nullable(Type.String()),
    choices: Type.Array(ChatChoice),
    usage: nullable(ChatUsage, { description: "Reported by the provider; null if missing" }),
    error: nullable(Type.String()),
    complete: Type.Boolean({ description: "The stream was marked as complete" }),
  },
  { $id: "AssembledChat" },
);
export type AssembledChat = Static<typeof AssembledChat>;

/** The assembled message of a stream's frames. */
export const AssembledStream = strictObject(
  {
    id: Type.String(),
    kind: StreamKind,
    frames: Type.Integer({ description: "Number of frames read" }),
    text: Type.String({ description: "Received texts, one per line" }),
    truncated: Type.Boolean({ description: "Incomplete, because of a limit" }),
    events: Type.Array(strictObject({ name: Type.String(), count: Type.Integer(), bytes: Type.Integer() }), {
      description: "Count of each type; the 100 most frequent",
    }),
    chat: nullable(AssembledChat),
  },
  { $id: "AssembledStream" },
);
export type AssembledStream = Static<typeof AssembledStream>;

const limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Maximum number of items" }),
);
const offset = Type.Optional(
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0, description: "Number of items to skip" }),
);

export const streamsOperations = defineOperations({
  listStreams: {
    method: "GET",
    path: "/streams",
    summary: "List streams of all kinds, newest first",
    description:
      "WebSocket connections, server-sent events, JSON streams and gRPC calls. An array with `X-Total-Count`.",
    access: "traffic:read",
    responseFields: COUNTED,
    query: strictObject({
      kind: Type.Optional(StreamKind),
      session_id: Type.Optional(
        Type.String({ maxLength: 64, description: "Id of a session, or `all`. Default: the active session" }),
      ),
      limit,
      offset,
    }),
    responses: { 200: Type.Array(StreamSummary) },
    expose: { mcp: { name: "list_streams", readOnly: true } },
  },
  getStream: {
    method: "GET",
    path: "/streams/{id}",
    summary: "One stream",
    access: "traffic:read",
    params: EntryIdParams,
    responses: { 200: StreamDetail },
  },
  listStreamFrames: {
    method: "GET",
    path: "/streams/{id}/frames",
    summary: "Frames of a stream, in order",
    description: "An array; `X-Total-Count` counts the items that match the filters.",
    access: "traffic:read",
    responseFields: COUNTED,
    params: EntryIdParams,
    query: strictObject({
      direction: Type.Optional(FrameDirection),
      type: Type.Optional(FrameType),
      search: Type.Optional(Type.String({ maxLength: 4096, description: "Text in payloads, case-insensitive" })),
      after: Type.Optional(
        Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: "Only frames with higher numbers" }),
      ),
      order: Type.Optional(oneOf(["asc", "desc"], { default: "asc" })),
      preview: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 65_536, default: 4096, description: "Maximum bytes of each payload" }),
      ),
      limit,
      offset,
    }),
    responses: { 200: Type.Array(StreamFrame) },
    expose: { mcp: { name: "list_stream_frames", readOnly: true } },
  },
  getStreamFrameBody: {
    method: "GET",
    path: "/streams/{id}/frames/{ordinal}/body",
    summary: "The payload of a frame as bytes",
    access: "traffic:read",
    params: strictObject({ id: EntryId, ordinal: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) }),
    responses: { 200: media("application/octet-stream", "The payload, uncompressed") },
  },
  assembleStream: {
    method: "GET",
    path: "/streams/{id}/assembled",
    summary: "The assembled message of a stream",
    description:
      "The joined text; for chat completions (OpenAI chat and responses, Anthropic messages, Google generateContent, Ollama) text, reasoning, tool calls, finish reason and usage.",
    access: "traffic:read",
    params: EntryIdParams,
    responses: { 200: AssembledStream },
    expose: { mcp: { name: "assemble_stream", readOnly: true } },
  },
});
