import { defineOperations, nullable, oneOf, strictObject, taggedBy, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { HeadersList } from "./message.ts";
import {
  COUNTED,
  CreatedId,
  EntryIdParams,
  Id,
  IdParams,
  Timestamp,
  ToggleBody,
  ToggleResult,
  named,
} from "./primitives.ts";

const MESSAGE_TYPES = ["text", "binary", "ping", "pong", "close", "continuation"] as const;
const DECIDED_TYPES = ["text", "binary", "ping", "pong", "close"] as const;

const Direction = oneOf(["send", "receive"], { description: "`send`: from the client" });
export type WsDirection = Static<typeof Direction>;

export const WsConnection = strictObject(
  {
    id: Type.String({ description: "That of its traffic entry" }),
    session_id: Id,
    url: Type.String(),
    host: Type.String(),
    path: Type.String({ description: "Path and query" }),
    state: oneOf(["connecting", "open", "closing", "closed"]),
    request_headers: Type.Record(Type.String(), Type.String(), { description: "Duplicates joined by a comma" }),
    request_headers_list: HeadersList,
    response_headers: Type.Record(Type.String(), Type.String()),
    response_headers_list: HeadersList,
    subprotocol: nullable(Type.String()),
    extensions: nullable(Type.String({ description: "As they were agreed on" })),
    created_at: Timestamp,
    closed_at: nullable(Timestamp),
    close_code: nullable(Type.Integer({ description: "That of the last close frame; 1006: it ended without one" })),
    close_reason: nullable(Type.String()),
    problem: nullable(Type.String({ description: "What broke the protocol: from there on bytes passed unread" })),
    messages_sent: Type.Integer({ description: "Frames from the client, stored or not" }),
    messages_received: Type.Integer(),
    messages_not_stored: Type.Integer({
      description: "Passed on, but shed by the store under load, or larger than `max_total_size_mb`",
    }),
    bytes_sent: Type.Integer({ description: "Of payloads, uncompressed" }),
    bytes_received: Type.Integer(),
    can_send: Type.Boolean({ description: "Messages can be added to it now" }),
  },
  { $id: "WsConnection" },
);
export type WsConnection = Static<typeof WsConnection>;

const payloadProperties = {
  raw: Type.Optional(
    Type.Array(Type.Integer({ minimum: 0, maximum: 255 }), { description: "Where it is not text: its bytes" }),
  ),
  raw_base64: Type.Optional(Type.String({ description: "The same in base64" })),
  text: Type.Optional(
    Type.String({ description: "Where it is text; of a close frame code and reason: `1000 Normal Closure: bye`" }),
  ),
  json: Type.Optional(Type.Unknown({ description: "Where the text is JSON" })),
  size: Type.Integer({ description: "Bytes of the whole payload, uncompressed" }),
};
export const WsPayload = strictObject(payloadProperties, { $id: "WsPayload" });
export type WsPayload = Static<typeof WsPayload>;

export const WsMessage = strictObject(
  {
    id: Type.String(),
    connection_id: Type.String(),
    ordinal: Type.Integer({ description: "Number in its connection, from 1 on" }),
    direction: Direction,
    message_type: oneOf([...MESSAGE_TYPES]),
    payload: WsPayload,
    timestamp: Timestamp,
    opcode: Type.Integer(),
    is_final: Type.Boolean(),
    mask: Type.Optional(Type.Integer({ description: "The masking key, where there was one" })),
    compressed: Type.Boolean(),
    truncated: Type.Boolean({ description: "The payload is longer than what is shown or stored" }),
    wire_size: Type.Integer({ description: "Bytes of the frame as it came, or of all frames of the message" }),
    fragments: Type.Optional(Type.Integer({ description: "With the last frame of a message: how many it came in" })),
    joined: Type.Optional(
      Type.Unsafe<WsPayload>({ ...WsPayload, description: "With the last frame of a message: its frames together" }),
    ),
    effect: nullable(oneOf(["injected", "modified", "dropped"], { description: "What Weir did to it" })),
    original: Type.Optional(
      Type.Unsafe<WsPayload>({ ...WsPayload, description: "What it was before a rule changed it" }),
    ),
    problem: Type.Optional(Type.String({ description: "What is wrong with its content" })),
  },
  { $id: "WsMessage" },
);
export type WsMessage = Static<typeof WsMessage>;

export const WsStats = strictObject(
  {
    connections: Type.Integer(),
    open_connections: Type.Integer(),
    messages_sent: Type.Integer(),
    messages_received: Type.Integer(),
    messages_stored: Type.Integer(),
    messages_not_stored: Type.Integer(),
    bytes_sent: Type.Integer(),
    bytes_received: Type.Integer(),
    stored_bytes: Type.Integer(),
    by_type: Type.Record(Type.String(), Type.Integer()),
    paused: Type.Integer({ description: "Messages that wait for a decision" }),
  },
  { $id: "WsStats" },
);
export type WsStats = Static<typeof WsStats>;

const pattern = (description: string) => Type.String({ minLength: 1, maxLength: 1000, description });

/** Which messages a rule is for; all that is given must hold. */
export const WsRuleMatch = strictObject(
  {
    host: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: "Host, `*.domain`, text with `*`, or a network" }),
    ),
    url: Type.Optional(pattern("Pattern for the URL of the connection")),
    direction: Type.Optional(Direction),
    message_type: Type.Optional(oneOf([...DECIDED_TYPES])),
    text: Type.Optional(pattern("Pattern for the text of a text message")),
  },
  { $id: "WsRuleMatch" },
);
export type WsRuleMatch = Static<typeof WsRuleMatch>;

const actionKinds = [
  strictObject({
    type: oneOf(["replace"]),
    find: Type.Optional(
      pattern("Pattern of what is replaced; without it the pattern of the text, else the whole text"),
    ),
    replacement: Type.String({ maxLength: 65_536, description: "`$1`, `$<name>` and `$&` stand for what was found" }),
  }),
  strictObject({ type: oneOf(["drop"]) }),
  strictObject({
    type: oneOf(["delay"]),
    delay_ms: Type.Integer({ minimum: 1, maximum: 60_000, description: "Everything behind it waits as well" }),
  }),
  strictObject({ type: oneOf(["pause"]) }),
];

/** What a rule does to a message that matches. */
export const WsRuleAction = taggedBy<WsRuleAction>("type", actionKinds, { $id: "WsRuleAction" });
export type WsRuleAction = Static<(typeof actionKinds)[number]>;

export const WsRule = strictObject(
  {
    id: Id,
    name: Type.String(),
    enabled: Type.Boolean(),
    match: WsRuleMatch,
    action: WsRuleAction,
    hit_count: Type.Integer(),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { $id: "WsRule" },
);
export type WsRule = Static<typeof WsRule>;

const writable = {
  name: Type.Optional(named("What it is for")),
  enabled: Type.Optional(Type.Boolean({ description: "Whether it does anything" })),
  match: Type.Optional(WsRuleMatch),
  action: WsRuleAction,
};

/** Body of a create. */
export const NewWsRule = strictObject(writable);
export type NewWsRule = Static<typeof NewWsRule>;

/** Body of an update: what GET returned may be sent back; its read-only fields are not changes. */
export const WsRuleUpdate = strictObject({
  ...writable,
  id: Type.Optional(Id),
  hit_count: Type.Optional(Type.Integer()),
  created_at: Type.Optional(Timestamp),
  updated_at: Type.Optional(Timestamp),
});
export type WsRuleUpdate = Static<typeof WsRuleUpdate>;

export const WsPaused = strictObject(
  {
    id: Id,
    connection_id: Type.String(),
    url: Type.String(),
    rule_id: Type.String(),
    rule_name: Type.String(),
    direction: Direction,
    message_type: oneOf([...DECIDED_TYPES]),
    payload: WsPayload,
    paused_at: Timestamp,
  },
  { $id: "WsPaused" },
);
export type WsPaused = Static<typeof WsPaused>;

const content = {
  text: Type.Optional(Type.String({ maxLength: 4_194_304, description: "Of a text message" })),
  base64: Type.Optional(Type.String({ maxLength: 5_592_408, description: "Of one that is not text" })),
};

const limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Most of one answer" }),
);
const offset = Type.Optional(
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0, description: "Left out first" }),
);

export const wsTrafficOperations = defineOperations({
  listWsConnections: {
    method: "GET",
    path: "/ws-traffic/connections",
    summary: "List WebSocket connections, newest first",
    description: "A bare array with `X-Total-Count`.",
    access: "traffic:read",
    responseFields: COUNTED,
    query: strictObject({
      session_id: Type.Optional(
        Type.String({ maxLength: 64, description: "Id of a session, or `all`; without it the active one" }),
      ),
      limit,
      offset,
    }),
    responses: { 200: Type.Array(WsConnection) },
    expose: { mcp: { name: "list_ws_connections", readOnly: true } },
  },
  getWsConnection: {
    method: "GET",
    path: "/ws-traffic/connections/{id}",
    summary: "One WebSocket connection",
    access: "traffic:read",
    params: EntryIdParams,
    responses: { 200: WsConnection },
    expose: { mcp: { name: "get_ws_connection", readOnly: true } },
  },
  sendWsMessage: {
    method: "POST",
    path: "/ws-traffic/connections/{id}/send",
    summary: "Add a message to an open connection",
    description:
      "It goes out as if the other side had sent it, as soon as no other message is under way in that direction.",
    access: "traffic:write",
    params: EntryIdParams,
    body: strictObject({
      direction: Type.Optional(
        oneOf(["send", "receive"], { default: "send", description: "`send`: to the server, `receive`: to the client" }),
      ),
      message_type: Type.Optional(
        oneOf(["text", "binary", "ping", "pong"], { description: "Without it what the content is" }),
      ),
      ...content,
    }),
    responses: { 204: null },
  },
  closeWsConnection: {
    method: "POST",
    path: "/ws-traffic/connections/{id}/close",
    summary: "Close an open connection towards both sides",
    access: "traffic:write",
    params: EntryIdParams,
    body: strictObject({
      code: Type.Optional(Type.Integer({ minimum: 1000, maximum: 4999, default: 1000 })),
      reason: Type.Optional(Type.String({ maxLength: 123 })),
    }),
    bodyOptional: true,
    responses: { 204: null },
  },
  listWsMessages: {
    method: "GET",
    path: "/ws-traffic/messages",
    summary: "List messages, oldest first",
    description: "A bare array with `X-Total-Count`, which counts what the filters let through.",
    access: "traffic:read",
    responseFields: COUNTED,
    query: strictObject({
      connection_id: Type.Optional(Type.String({ maxLength: 64 })),
      direction: Type.Optional(Direction),
      message_type: Type.Optional(oneOf([...MESSAGE_TYPES])),
      search: Type.Optional(
        Type.String({
          maxLength: 4096,
          description:
            "Text in payloads, in any letter case; across the frames of a message, found with the last of them",
        }),
      ),
      limit,
      offset,
    }),
    responses: { 200: Type.Array(WsMessage) },
    expose: { mcp: { name: "get_ws_messages", readOnly: true } },
  },
  clearWsTraffic: {
    method: "POST",
    path: "/ws-traffic/clear",
    summary: "Remove all messages, and connections that are closed",
    access: "traffic:delete",
    responses: { 204: null },
    expose: { mcp: { name: "clear_ws_traffic", readOnly: false } },
  },
  getWsStats: {
    method: "GET",
    path: "/ws-traffic/stats",
    summary: "How much went over WebSocket connections",
    access: "traffic:read",
    responses: { 200: WsStats },
  },
  listWsRules: {
    method: "GET",
    path: "/ws-traffic/rules",
    summary: "List message rules, newest first",
    description: "They hold in the order in which they were made. A bare array with `X-Total-Count`.",
    access: "breakpoints:read",
    responseFields: COUNTED,
    query: strictObject({ limit, offset }),
    responses: { 200: Type.Array(WsRule) },
  },
  createWsRule: {
    method: "POST",
    path: "/ws-traffic/rules",
    summary: "Make a rule for messages",
    access: "breakpoints:write",
    body: NewWsRule,
    responses: { 201: CreatedId },
  },
  getWsRule: {
    method: "GET",
    path: "/ws-traffic/rules/{id}",
    summary: "One message rule",
    access: "breakpoints:read",
    params: IdParams,
    responses: { 200: WsRule },
  },
  updateWsRule: {
    method: "PUT",
    path: "/ws-traffic/rules/{id}",
    summary: "Update a message rule",
    access: "breakpoints:write",
    params: IdParams,
    body: WsRuleUpdate,
    responses: { 200: WsRule },
  },
  deleteWsRule: {
    method: "DELETE",
    path: "/ws-traffic/rules/{id}",
    summary: "Delete a message rule",
    access: "breakpoints:delete",
    params: IdParams,
    responses: { 204: null },
  },
  toggleWsRule: {
    method: "POST",
    path: "/ws-traffic/rules/{id}/toggle",
    summary: "Enable or disable a message rule",
    access: "breakpoints:write",
    params: IdParams,
    body: ToggleBody,
    bodyOptional: true,
    responses: { 200: ToggleResult },
  },
  listWsPaused: {
    method: "GET",
    path: "/ws-traffic/paused",
    summary: "Messages that wait for a decision, oldest first",
    description: "At most 100; when one more comes, the oldest goes on.",
    access: "breakpoints:read",
    responseFields: COUNTED,
    responses: { 200: Type.Array(WsPaused) },
  },
  resumeWsMessage: {
    method: "POST",
    path: "/ws-traffic/paused/{id}/resume",
    summary: "Decide on a message that waits",
    access: "breakpoints:write",
    params: IdParams,
    body: strictObject({
      action: oneOf(["allow", "modify", "drop"], { description: "`modify` needs a content" }),
      ...content,
    }),
    responses: { 204: null },
  },
});
