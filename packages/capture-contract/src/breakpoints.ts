import { defineOperations, nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Condition, conditionShorthand } from "./condition.ts";
import { HeadersList } from "./message.ts";
import {
  booleanText,
  COUNTED,
  CreatedId,
  Id,
  IdParams,
  named,
  NoDevice,
  Timestamp,
  ToggleBody,
  ToggleResult,
} from "./primitives.ts";

const direction = (description: string) => oneOf(["request", "response", "both"], { description });
const timeoutSecs = Type.Integer({
  minimum: 1,
  maximum: 86_400,
  description: "Seconds after which a paused exchange continues automatically; null waits indefinitely",
});

/** A rule that pauses what its condition matches. */
export const Breakpoint = strictObject(
  {
    id: Id,
    name: Type.String(),
    condition: Condition,
    direction: direction("Which message is paused"),
    enabled: Type.Boolean(),
    priority: Type.Integer(),
    timeout_secs: nullable(timeoutSecs),
    hit_count: Type.Integer({ description: "Number of times it paused an exchange" }),
    device_id: NoDevice,
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { $id: "Breakpoint" },
);
export type Breakpoint = Static<typeof Breakpoint>;

const writable = {
  name: Type.Optional(named("Name of the rule. Default: derived from its condition")),
  condition: Type.Optional(Condition),
  direction: Type.Optional(direction("Which messages are paused. Default: `both`")),
  enabled: Type.Optional(Type.Boolean({ description: "Whether the rule is active. Default: true" })),
  priority: Type.Optional(
    Type.Integer({
      minimum: -1_000_000,
      maximum: 1_000_000,
      description: "If several rules match, the lowest number wins, then the oldest rule. Default: 100",
    }),
  ),
  timeout_secs: Type.Optional(nullable(timeoutSecs)),
  device_id: Type.Optional(NoDevice),
  ...conditionShorthand,
};

/** Body of a create: with `condition`, or with its shorthand. */
export const NewBreakpoint = strictObject(writable);
export type NewBreakpoint = Static<typeof NewBreakpoint>;

/** Body of an update: what GET returned may be sent back; its read-only fields are not changes. */
export const BreakpointUpdate = strictObject({
  ...writable,
  id: Type.Optional(Id),
  hit_count: Type.Optional(Type.Integer()),
  created_at: Type.Optional(Timestamp),
  updated_at: Type.Optional(Timestamp),
});
export type BreakpointUpdate = Static<typeof BreakpointUpdate>;

const heldBody = {
  body: nullable(Type.String(), {
    description:
      "For editing: without content coding, text as UTF-8, anything else as `base64:` and standard base64. Null for the reason in `body_state`",
  }),
  body_encoding: nullable(oneOf(["utf8", "base64"])),
  body_size: Type.Integer({ minimum: 0, description: "Bytes received so far, with content coding" }),
  body_state: oneOf(["none", "complete", "coded", "receiving", "too_large", "stream", "gone", "left_out"], {
    description:
      "`complete`: decoded for editing; `coded`: the content coding cannot be removed, so the body is shown and edited as received; `receiving`: not complete yet; `too_large`: above `breakpoint_body_limit`, passed on unchanged; `stream`: has no end, passed on unchanged; `gone`: the exchange is over; `left_out`: not requested, or not kept",
  }),
  charset: nullable(Type.String({ description: "Charset that the text was decoded from and is encoded to" })),
};

/** A request that waits for a decision. */
export const PausedRequest = strictObject(
  {
    method: Type.String(),
    url: Type.String(),
    host: Type.String(),
    path: Type.String({ description: "Path and query" }),
    headers: Type.Record(Type.String(), Type.String(), { description: "Duplicates joined by a comma" }),
    headers_list: HeadersList,
    content_type: nullable(Type.String()),
    http_version: Type.String(),
    ...heldBody,
  },
  { $id: "PausedRequest" },
);
export type PausedRequest = Static<typeof PausedRequest>;

/** A paused response. */
export const PausedResponse = strictObject(
  {
    status_code: Type.Integer(),
    status_message: Type.String(),
    headers: Type.Record(Type.String(), Type.String(), { description: "Duplicates joined by a comma" }),
    headers_list: HeadersList,
    content_type: nullable(Type.String()),
    http_version: Type.String(),
    ...heldBody,
  },
  { $id: "PausedResponse" },
);
export type PausedResponse = Static<typeof PausedResponse>;

/** A change to a message, one of several that are made in order. */
export const Modification = strictObject(
  {
    type: oneOf(
      [
        "set_header",
        "remove_header",
        "set_body",
        "set_body_base64",
        "set_method",
        "set_url",
        "set_path",
        "set_status_code",
        "regex_replace",
        "url_regex_replace",
        "delay",
      ],
      { description: "The change; each kind takes only the fields that mention it" },
    ),
    name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: "Of `set_header` and `remove_header`" }),
    ),
    value: Type.Optional(Type.String({ maxLength: 65_536, description: "Of `set_header`" })),
    content: Type.Optional(Type.String({ description: "Of `set_body` (text) and `set_body_base64`" })),
    method: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: "Of `set_method`; requests only" })),
    url: Type.Optional(Type.String({ minLength: 1, maxLength: 65_536, description: "Of `set_url`; requests only" })),
    path: Type.Optional(Type.String({ minLength: 1, maxLength: 65_536, description: "Of `set_path`; requests only" })),
    code: Type.Optional(
      Type.Integer({ minimum: 200, maximum: 999, description: "Of `set_status_code`; responses only" }),
    ),
    pattern: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1000, description: "Of `regex_replace` (body) and `url_regex_replace`" }),
    ),
    replacement: Type.Optional(
      Type.String({ maxLength: 65_536, description: "Replacement for each match; may contain `$1` and `$&`" }),
    ),
    ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 600_000, description: "Of `delay`: before it continues" })),
  },
  { $id: "Modification" },
);
export type Modification = Static<typeof Modification>;

/** The input form of `headers_list`: the validator does not support tuples. */
const givenHeadersList = Type.Unsafe<[string, string][]>({
  type: "array",
  maxItems: 10_000,
  items: { type: "array", items: { type: "string", maxLength: 65_536 }, minItems: 2, maxItems: 2 },
  description: "All fields as pairs of name and value, in wire order, duplicates kept",
});

const replaceable = {
  method: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: "Requests only" })),
  url: Type.Optional(Type.String({ minLength: 1, maxLength: 65_536, description: "Requests only" })),
  path: Type.Optional(
    Type.String({ minLength: 1, maxLength: 65_536, description: "Path and query, if `url` is unchanged" }),
  ),
  status_code: Type.Optional(Type.Integer({ minimum: 200, maximum: 999, description: "Responses only" })),
  status_message: Type.Optional(nullable(Type.String({ maxLength: 255 }), { description: "Responses only" })),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description:
        "All fields; missing ones are removed, except Host. An unchanged value leaves its fields unchanged, duplicates included",
    }),
  ),
  headers_list: Type.Optional(givenHeadersList),
  body: Type.Optional(
    nullable(Type.String(), { description: "The whole body, as shown; its content coding is applied again" }),
  ),
  body_encoding: Type.Optional(
    nullable(oneOf(["utf8", "base64"]), {
      description: "Encoding of `body`. Default: base64 if it begins with `base64:`, otherwise text",
    }),
  ),
};

/** A replacement of a message; omitted parts are unchanged. The response of GET may be sent back with changes. */
export const Replacement = strictObject(
  {
    ...replaceable,
    host: Type.Optional(Type.String()),
    content_type: Type.Optional(nullable(Type.String())),
    http_version: Type.Optional(nullable(Type.String())),
    body_size: Type.Optional(Type.Integer()),
    body_state: Type.Optional(heldBody.body_state),
    charset: Type.Optional(heldBody.charset),
  },
  { $id: "Replacement" },
);
export type Replacement = Static<typeof Replacement>;

const decisionFields = {
  modifications: Type.Optional(
    Type.Union([Type.Array(Modification, { maxItems: 1000 }), Replacement], {
      description: "Of `modify`: changes in order, or the new message",
    }),
  ),
  request: Type.Optional(Replacement),
  response: Type.Optional(nullable(Replacement)),
  ...replaceable,
};

const ACTIONS = ["continue", "allow", "modify", "abort", "reject", "respond"] as const;

/**
 * The decision on a paused exchange. `continue` (`allow`): unchanged; `modify`: with `modifications`, or with the fields
 * of a replacement beside it; `abort` (`reject`): the connection is closed without a response; `respond`: the client gets
 * `status_code`, `headers` and `body`. The action may stand in `action` or `decision`, or `action` may hold the whole
 * decision.
 */
export const BreakpointDecision = strictObject(
  {
    action: Type.Optional(
      Type.Union([oneOf([...ACTIONS]), strictObject({ action: oneOf([...ACTIONS]), ...decisionFields })]),
    ),
    decision: Type.Optional(oneOf([...ACTIONS])),
    ...decisionFields,
  },
  { $id: "BreakpointDecision" },
);
export type BreakpointDecision = Static<typeof BreakpointDecision>;

/** An exchange that waits. */
export const PausedItem = strictObject(
  {
    id: Id,
    entry_id: Type.String({ description: "The traffic entry, which stays pending until then" }),
    direction: oneOf(["request", "response"], { description: "Which of its messages is paused" }),
    request: PausedRequest,
    response: nullable(PausedResponse),
    paused_at: Timestamp,
    deadline: nullable(Timestamp, { description: "When it continues automatically" }),
    position: Type.Integer({ description: "1 is the oldest, the first to continue if too many are paused" }),
    rule_id: Type.String({ description: "`pause-all` if no rule matched" }),
    breakpoint_id: Type.String({ description: "The same as `rule_id`" }),
    rule_name: Type.String(),
    client_addr: nullable(Type.String(), {
      description: "`address:port`; null for requests sent by Weir itself, such as replays",
    }),
    modifications: Type.Array(Modification, { description: "Always empty: changes are part of the decision" }),
  },
  { $id: "PausedItem" },
);
export type PausedItem = Static<typeof PausedItem>;

/** The switch that pauses what no rule matches. */
export const PauseAll = strictObject(
  {
    enabled: Type.Boolean({ description: "Whether it is on; off after each start of the service" }),
    direction: direction("Which messages it pauses"),
    timeout_secs: nullable(timeoutSecs),
    paused_count: Type.Integer({ description: "Exchanges paused now, including those paused by rules" }),
  },
  { $id: "PauseAll" },
);
export type PauseAll = Static<typeof PauseAll>;

const page = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1000, description: "Maximum number of items. Default: 100" }),
  ),
  offset: Type.Optional(Type.Integer({ minimum: 0, description: "Number of items to skip" })),
};

export const breakpointsOperations = defineOperations({
  listBreakpoints: {
    method: "GET",
    path: "/breakpoints",
    summary: "List breakpoint rules, newest first",
    access: "breakpoints:read",
    responseFields: COUNTED,
    query: strictObject(page),
    responses: { 200: Type.Array(Breakpoint) },
    expose: { mcp: { name: "list_breakpoints", readOnly: true } },
  },
  createBreakpoint: {
    method: "POST",
    path: "/breakpoints",
    summary: "Create a breakpoint rule",
    access: "breakpoints:write",
    body: NewBreakpoint,
    responses: { 201: CreatedId },
    expose: { mcp: { name: "create_breakpoint", readOnly: false } },
  },
  listPausedItems: {
    method: "GET",
    path: "/breakpoints/paused",
    summary: "Paused exchanges, newest first",
    access: "breakpoints:read",
    responseFields: COUNTED,
    query: strictObject({ include_bodies: Type.Optional(booleanText("Include bodies, decoded for editing")) }),
    responses: { 200: Type.Array(PausedItem) },
    expose: { mcp: { name: "list_paused_traffic", readOnly: true } },
  },
  getPausedItem: {
    method: "GET",
    path: "/breakpoints/paused/{id}",
    summary: "One paused exchange, with its bodies decoded for editing",
    access: "breakpoints:read",
    params: IdParams,
    responses: { 200: PausedItem },
    expose: { mcp: { name: "get_paused_item", readOnly: true } },
  },
  resumePausedItem: {
    method: "POST",
    path: "/breakpoints/paused/{id}/resume",
    summary: "Continue, edit, drop or respond to a paused exchange",
    access: "breakpoints:write",
    params: IdParams,
    body: BreakpointDecision,
    responses: {
      200: strictObject({ id: Id, action: oneOf(["continue", "modify", "abort", "respond"]) }),
    },
    expose: { mcp: { name: "resume_paused_item", readOnly: false } },
  },
  holdPausedItem: {
    method: "POST",
    path: "/breakpoints/paused/{id}/hold",
    summary: "Extend the timeout of a paused exchange, for example while it is being edited",
    description:
      "It stays paused for at least `seconds` from now, and is not the one to continue if too many are paused. The limit is an hour after it was paused, or its rule's timeout if that is longer. Without a timeout it stays paused indefinitely.",
    access: "breakpoints:write",
    params: IdParams,
    body: strictObject({
      seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 3600, description: "Default: 60" })),
    }),
    bodyOptional: true,
    responses: {
      200: strictObject({
        id: Id,
        deadline: nullable(Timestamp, { description: "When it continues automatically" }),
      }),
    },
    expose: { mcp: { name: "hold_paused_item", readOnly: false } },
  },
  getPauseAll: {
    method: "GET",
    path: "/breakpoints/pause-all",
    summary: "Whether all exchanges are paused",
    access: "breakpoints:read",
    responses: { 200: PauseAll },
  },
  pauseAll: {
    method: "POST",
    path: "/breakpoints/pause-all",
    summary: "Pause every exchange that no rule matches",
    description: "An empty body switches it on. It is off after a restart.",
    access: "breakpoints:write",
    body: strictObject({
      enabled: Type.Optional(Type.Boolean({ description: "False switches it off; paused exchanges stay paused" })),
      direction: Type.Optional(direction("Which messages are paused. Default: `request`")),
      timeout_secs: Type.Optional(nullable(timeoutSecs)),
    }),
    bodyOptional: true,
    responses: { 200: PauseAll },
  },
  resumeAll: {
    method: "POST",
    path: "/breakpoints/resume-all",
    summary: "Continue all paused exchanges, or those paused by one rule",
    description:
      "Without `rule_id`, pause-all is switched off too. With `rule_id`, only exchanges paused by this rule continue; `disable` keeps the rule from pausing more.",
    access: "breakpoints:write",
    body: strictObject({
      rule_id: Type.Optional(
        Type.String({ minLength: 1, maxLength: 64, description: "Only exchanges paused by this rule" }),
      ),
      disable: Type.Optional(Type.Boolean({ description: "First disable that rule, or all rules" })),
    }),
    bodyOptional: true,
    responses: { 200: strictObject({ resumed_count: Type.Integer() }) },
  },
  getBreakpoint: {
    method: "GET",
    path: "/breakpoints/{id}",
    summary: "One breakpoint rule",
    access: "breakpoints:read",
    params: IdParams,
    responses: { 200: Breakpoint },
    expose: { mcp: { name: "get_breakpoint", readOnly: true } },
  },
  updateBreakpoint: {
    method: "PUT",
    path: "/breakpoints/{id}",
    summary: "Update a breakpoint rule",
    access: "breakpoints:write",
    params: IdParams,
    body: BreakpointUpdate,
    responses: { 200: Breakpoint },
  },
  deleteBreakpoint: {
    method: "DELETE",
    path: "/breakpoints/{id}",
    summary: "Delete a breakpoint rule; the exchanges it paused stay paused",
    access: "breakpoints:delete",
    params: IdParams,
    responses: { 204: null },
    expose: { mcp: { name: "delete_breakpoint", readOnly: false } },
  },
  toggleBreakpoint: {
    method: "POST",
    path: "/breakpoints/{id}/toggle",
    summary: "Enable or disable a breakpoint rule",
    access: "breakpoints:write",
    params: IdParams,
    body: ToggleBody,
    bodyOptional: true,
    responses: { 200: ToggleResult },
  },
});
