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

export const WsConnection = strictObject(
  {
    id: Type.String({ description: "Id of its traffic entry" }),
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
    extensions: nullable(Type.String({ description: "As negotiated" })),
    created_at: Timestamp,
    closed_at: nullable(Timestamp),
    close_code: nullable(Type.Integer({ description: "Code of the last close frame; 1006 if there was none" })),
    close_reason: nullable(Type.String()),
    problem: nullable(
      Type.String({ description: "Violation of the protocol: from there on bytes were relayed unread" }),
    ),
    messages_sent: Type.Integer({ description: "Frames from the client, stored or not" }),
    messages_received: Type.Integer(),
    messages_not_stored: Type.Integer({
      description: "Passed on but not stored, because of load or `max_total_size_mb`",
    }),
    bytes_sent: Type.Integer({ description: "Bytes of payloads, uncompressed" }),
    bytes_received: Type.Integer(),
    can_send: Type.Boolean({ description: "Whether messages can be added now" }),
  },
  { $id: "WsConnection" },
);
export type WsConnection = Static<typeof WsConnection>;

const payloadProperties = {
  raw: Type.Optional(
    Type.Array(Type.Integer({ minimum: 0, maximum: 255 }), { description: "Bytes, if it is not text" }),
  ),
  raw_base64: Type.Optional(Type.String({ description: "The same in base64" })),
  text: Type.Optional(
    Type.String({ description: "Text, if it is text; code and reason of a close frame: `1000 Normal Closure: bye`" }),
  ),
  json: Type.Optional(Type.Unknown({ description: "Parsed, if the text is JSON" })),
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
    mask: Type.Optional(Type.Integer({ description: "The masking key, if there was one" })),
    compressed: Type.Boolean(),
    truncated: Type.Boolean({ description: "The payload is longer than what is included or stored" }),
    wire_size: Type.Integer({ description: "Bytes of the frame as received, or of all frames of the message" }),
    fragments: Type.Optional(Type.Integer({ description: "In the last frame of a message: its number of frames" })),
    joined: Type.Optional(
      Type.Unsafe<WsPayload>({
        ...WsPayload,
        description: "In the last frame of a message: the content of all its frames",
      }),
    ),
    effect: nullable(oneOf(["injected", "modified", "dropped"], { description: "Effect of rules" })),
    original: Type.Optional(
      Type.Unsafe<WsPayload>({ ...WsPayload, description: "The original payload, before a rule changed it" }),
    ),
    problem: Type.Optional(Type.String({ description: "Problem with its content" })),
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
    paused: Type.Integer({ description: "Paused messages" }),
  },
  { $id: "WsStats" },
);
export type WsStats = Static<typeof WsStats>;

const pattern = (description: string) => Type.String({ minLength: 1, maxLength: 1000, description });

/** The messages that a rule matches; all given parts must match. */
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
    find: Type.Optional(pattern("Pattern to replace. Default: the pattern of the text, otherwise the whole text")),
    replacement: Type.String({ maxLength: 65_536, description: "May contain `$1`, `$<name>` and `$&`" }),
  }),
  strictObject({ type: oneOf(["drop"]) }),
  strictObject({
    type: oneOf(["delay"]),
    delay_ms: Type.Integer({ minimum: 1, maximum: 60_000, description: "Later messages wait as well" }),
  }),
  strictObject({ type: oneOf(["pause"]) }),
];

/** The action of a rule on a matching message. */
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
  name: Type.Optional(named("Name of the rule")),
  enabled: Type.Optional(Type.Boolean({ description: "Whether the rule is active" })),
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
  text: Type.Optional(Type.String({ maxLength: 4_194_304, description: "Content of a text message" })),
  base64: Type.Optional(Type.String({ maxLength: 5_592_408, description: "Content of a binary message, in base64" })),
};

const limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Maximum number of items" }),
);
const offset = Type.Optional(
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0, description: "Number of items to skip" }),
);

export const wsTrafficOperations = defineOperations({
  listWsConnections: {
    method: "GET",
    path: "/ws-traffic/connections",
    summary: "List WebSocket connections, newest first",
    description: "An array with `X-Total-Count`.",
    access: "traffic:read",
    responseFields: COUNTED,
    query: strictObject({
      session_id: Type.Optional(
        Type.String({ maxLength: 64, description: "Id of a session, or `all`. Default: the active session" }),
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
    summary: "Send a message on an open connection",
    description:
      "Sent as if it came from the other side, as soon as no other message is in progress in that direction.",
    access: "traffic:write",
    params: EntryIdParams,
    body: strictObject({
      direction: Type.Optional(
        oneOf(["send", "receive"], { default: "send", description: "`send`: to the server; `receive`: to the client" }),
      ),
      message_type: Type.Optional(
        oneOf(["text", "binary", "ping", "pong"], { description: "Default: the type of the content" }),
      ),
      ...content,
    }),
    responses: { 204: null },
  },
  closeWsConnection: {
    method: "POST",
    path: "/ws-traffic/connections/{id}/close",
    summary: "Close an open connection on both sides",
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
    description: "An array; `X-Total-Count` counts the items that match the filters.",
    access: "traffic:read",
    responseFields: COUNTED,
    query: strictObject({
      connection_id: Type.Optional(Type.String({ maxLength: 64 })),
      direction: Type.Optional(Direction),
      message_type: Type.Optional(oneOf([...MESSAGE_TYPES])),
      search: Type.Optional(
        Type.String({
          maxLength: 4096,
          description: "Text in payloads, case-insensitive; text across frames is found in the message's last frame",
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
    summary: "Delete all messages and closed connections",
    access: "traffic:delete",
    responses: { 204: null },
    expose: { mcp: { name: "clear_ws_traffic", readOnly: false } },
  },
  getWsStats: {
    method: "GET",
    path: "/ws-traffic/stats",
    summary: "Totals of WebSocket connections and messages",
    access: "traffic:read",
    responses: { 200: WsStats },
  },
  listWsRules: {
    method: "GET",
    path: "/ws-traffic/rules",
    summary: "List message rules, newest first",
    description: "They apply in order of creation. An array with `X-Total-Count`.",
    access: "breakpoints:read",
    responseFields: COUNTED,
    query: strictObject({ limit, offset }),
    responses: { 200: Type.Array(WsRule) },
  },
  createWsRule: {
    method: "POST",
    path: "/ws-traffic/rules",
    summary: "Create a message rule",
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
    summary: "Paused messages, oldest first",
    description: "At most 100; beyond that the oldest continues.",
    access: "breakpoints:read",
    responseFields: COUNTED,
    responses: { 200: Type.Array(WsPaused) },
  },
  resumeWsMessage: {
    method: "POST",
    path: "/ws-traffic/paused/{id}/resume",
    summary: "Continue, edit or drop a paused message",
    access: "breakpoints:write",
    params: IdParams,
    body: strictObject({
      action: oneOf(["allow", "modify", "drop"], { description: "Decision; `modify` needs content" }),
      ...content,
    }),
    responses: { 204: null },
  },
});
