import {
  asksReadable,
  cookiePairs,
  DIRECTIONS,
  type Evaluation,
  fieldLines,
  fieldValues,
  foldAscii,
  type QueryRecord,
  READABLE,
} from "./record.ts";
import type { FieldTest, TextValue } from "./query.ts";

/** Facts that every store keeps in columns of its own, named as in `QueryRecord`. */
export type PlanColumn =
  | "id"
  | "seq"
  | "method"
  | "scheme"
  | "host"
  | "port"
  | "path"
  | "status"
  | "requestType"
  | "responseType"
  | "resourceType"
  | "requestSizeBytes"
  | "responseSizeBytes"
  | "durationMs"
  | "timestampMs"
  | "state"
  | "isPassthrough"
  | "grpcStatus"
  | "incoming"
  | "outgoing"
  | "webSocketMessages";

/** How numbers of a field are written. */
export type NumberUnit = "count" | "status" | "grpcStatus" | "duration" | "size" | "time";

/** Which material a field reads, from cheap to dear. */
export type Reads = "columns" | "stream" | "fields" | "requestBody" | "responseBody" | "bothBodies" | "messages";

/** A field whose values are text. */
export interface TextField {
  readonly type: "text";
  /** Whether a bare value matches part of the text or all of it. */
  readonly literal: "contains" | "equals";
  /** How letters are compared; exact comparison (`:=`) ignores case too when `caseless` is set. */
  readonly fold: "ascii" | "unicode";
  readonly caseless?: boolean;
  /** Wildcards may match inside the text and need not cover all of it. */
  readonly floating?: boolean;
  /** All values of the field; absent ones are left out. */
  readonly read: (record: QueryRecord, key: string | null, evaluation: Evaluation) => readonly string[];
  /** The columns that hold the same values, in the order of `read`. */
  readonly columns?: readonly PlanColumn[];
  /** A column that has a value wherever the field has one. */
  readonly implies?: PlanColumn;
  /** The only accepted values. */
  readonly choices?: readonly string[];
  /** Shorter or alternative spellings of values. */
  readonly aliases?: Readonly<Record<string, string>>;
  /** A written value without what stands around it in other places, such as the brackets of an address in a URL. */
  readonly bare?: (text: string) => string;
  /** The value as people read and type it, where that differs from what is sent. */
  readonly readable?: (text: string) => string;
  /** For `:*` an empty text is a value like others. */
  readonly mayBeEmpty?: boolean;
  /** The meaning of `:*` where the texts do not decide it. */
  readonly exists?: (record: QueryRecord) => boolean;
}

/** A field whose value is one number. */
export interface NumberField {
  readonly type: "number";
  readonly unit: NumberUnit;
  readonly read: (record: QueryRecord) => number | undefined;
  readonly column?: PlanColumn;
}

/** One word of the language. New features add rows to `FIELDS`; parser, predicate, completion and help follow. */
export interface Field {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** Description of the field, as part of a sentence. */
  readonly phrase: string;
  /** Whether `field[key]` is accepted, and whether the case of the key's letters matters. */
  readonly keyed?: "caseless" | "exact";
  /** Values often begin with a slash, so `/…/` is a pattern only when it contains pattern characters. */
  readonly slashes?: boolean;
  readonly reads: Reads;
  readonly value: TextField | NumberField;
}

type TextTest = FieldTest & { readonly kind: "text" };

const NONE: readonly string[] = [];

function one(value: string | undefined): readonly string[] {
  return value === undefined ? NONE : [value];
}

function extension(path: string): readonly string[] {
  const dot = path.lastIndexOf(".");
  return dot === -1 || dot === path.length - 1 || path.includes("/", dot) ? NONE : [path.slice(dot + 1)];
}

const BOOLEAN = {
  type: "text",
  literal: "equals",
  fold: "ascii",
  caseless: true,
  choices: ["true", "false"],
  aliases: { yes: "true", no: "false", on: "true", off: "false" },
} as const;

/** Other names people use for kinds of resources. */
const TYPE_ALIASES = {
  js: "script",
  css: "stylesheet",
  style: "stylesheet",
  img: "image",
  doc: "document",
  ws: "websocket",
  sse: "event-stream",
};

/** All fields of the language. */
export const FIELDS: readonly Field[] = [
  {
    name: "method",
    phrase: "the method",
    reads: "columns",
    value: {
      type: "text",
      literal: "equals",
      fold: "ascii",
      caseless: true,
      columns: ["method"],
      read: (r) => [r.method],
    },
  },
  {
    name: "scheme",
    phrase: "the scheme",
    reads: "columns",
    value: {
      type: "text",
      literal: "equals",
      fold: "ascii",
      caseless: true,
      columns: ["scheme"],
      read: (r) => [r.scheme],
    },
  },
  {
    name: "host",
    aliases: ["domain"],
    phrase: "the host",
    reads: "columns",
    value: {
      type: "text",
      literal: "contains",
      fold: "ascii",
      caseless: true,
      bare: (text) => text.replace(/^\[([^[\]]+)\]$/, "$1"),
      readable: READABLE.host,
      columns: ["host"],
      read: (r) => [r.host],
    },
  },
  {
    name: "port",
    phrase: "the port",
    reads: "columns",
    value: { type: "number", unit: "count", column: "port", read: (r) => r.port },
  },
  {
    name: "path",
    phrase: "the path",
    slashes: true,
    reads: "columns",
    value: {
      type: "text",
      literal: "contains",
      fold: "ascii",
      readable: READABLE.path,
      columns: ["path"],
      read: (r) => [r.path],
    },
  },
  {
    name: "query",
    phrase: "the query string",
    slashes: true,
    reads: "columns",
    value: { type: "text", literal: "contains", fold: "ascii", readable: READABLE.query, read: (r) => [r.query] },
  },
  {
    name: "ext",
    phrase: "the file extension",
    reads: "columns",
    value: {
      type: "text",
      literal: "equals",
      fold: "ascii",
      bare: (text) => text.replace(/^\.+(?=.)/, ""),
      read: (r) => extension(r.path),
    },
  },
  {
    name: "url",
    phrase: "the URL",
    slashes: true,
    reads: "columns",
    value: { type: "text", literal: "contains", fold: "ascii", readable: READABLE.url, read: (r) => [r.url] },
  },
  {
    name: "status",
    phrase: "the status",
    reads: "columns",
    value: { type: "number", unit: "status", column: "status", read: (r) => r.status },
  },
  {
    name: "type",
    phrase: "the type of the response",
    reads: "columns",
    value: {
      type: "text",
      literal: "contains",
      fold: "ascii",
      caseless: true,
      columns: ["resourceType", "responseType"],
      aliases: TYPE_ALIASES,
      read: (r) =>
        r.resourceType === undefined
          ? one(r.responseType)
          : r.responseType === undefined
            ? [r.resourceType]
            : [r.resourceType, r.responseType],
    },
  },
  {
    name: "reqtype",
    phrase: "the type of the request body",
    reads: "columns",
    value: {
      type: "text",
      literal: "contains",
      fold: "ascii",
      caseless: true,
      columns: ["requestType"],
      read: (r) => one(r.requestType),
    },
  },
  {
    name: "grpc.service",
    phrase: "the gRPC service",
    reads: "columns",
    value: {
      type: "text",
      literal: "contains",
      fold: "ascii",
      caseless: true,
      read: (r) => parts(r.requestType, r.path, 0),
    },
  },
  {
    name: "grpc.method",
    phrase: "the gRPC method",
    reads: "columns",
    value: {
      type: "text",
      literal: "equals",
      fold: "ascii",
      caseless: true,
      read: (r) => parts(r.requestType, r.path, 1),
    },
  },
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
  {
    name: "header",
    phrase: "a header",
    keyed: "caseless",
    reads: "fields",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      mayBeEmpty: true,
      read: (r, key) =>
        key === null
          ? [...fieldLines(r.requestFields()), ...fieldLines(r.responseFields())]
          : [...fieldValues(r.requestFields(), key), ...fieldValues(r.responseFields(), key)],
    },
  },
  {
    name: "req.header",
    phrase: "a request header",
    keyed: "caseless",
    reads: "fields",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      mayBeEmpty: true,
      read: (r, key) => (key === null ? fieldLines(r.requestFields()) : fieldValues(r.requestFields(), key)),
    },
  },
  {
    name: "resp.header",
    phrase: "a response header",
    keyed: "caseless",
    reads: "fields",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      mayBeEmpty: true,
      read: (r, key) => (key === null ? fieldLines(r.responseFields()) : fieldValues(r.responseFields(), key)),
    },
  },
  {
    name: "cookie",
    phrase: "a cookie",
    keyed: "exact",
    reads: "fields",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      mayBeEmpty: true,
      read: (r, key) => cookiePairs(r.requestFields(), r.responseFields(), key),
    },
  },
  {
    name: "body",
    phrase: "a body",
    reads: "bothBodies",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      floating: true,
      exists: (r) => r.hasRequestBody || r.hasResponseBody,
      read: (r, _key, e) => [...one(e.text(r, "request")), ...one(e.text(r, "response"))],
    },
  },
  {
    name: "req.body",
    phrase: "the request body",
    reads: "requestBody",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      floating: true,
      exists: (r) => r.hasRequestBody,
      read: (r, _key, e) => one(e.text(r, "request")),
    },
  },
  {
    name: "resp.body",
    phrase: "the response body",
    reads: "responseBody",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      floating: true,
      exists: (r) => r.hasResponseBody,
      read: (r, _key, e) => one(e.text(r, "response")),
    },
  },
  {
    name: "size",
    phrase: "the response size",
    reads: "columns",
    value: { type: "number", unit: "size", column: "responseSizeBytes", read: (r) => r.responseSizeBytes },
  },
  {
    name: "reqsize",
    phrase: "the request size",
    reads: "columns",
    value: { type: "number", unit: "size", column: "requestSizeBytes", read: (r) => r.requestSizeBytes },
  },
  {
    name: "dur",
    aliases: ["duration"],
    phrase: "the duration",
    reads: "columns",
    value: { type: "number", unit: "duration", column: "durationMs", read: (r) => r.durationMs },
  },
  {
    name: "ttfb",
    phrase: "the time to the first byte",
    reads: "columns",
    value: { type: "number", unit: "duration", read: (r) => r.ttfbMs },
  },
  {
    name: "proto",
    aliases: ["protocol"],
    phrase: "the protocol version",
    reads: "columns",
    value: {
      type: "text",
      literal: "contains",
      fold: "ascii",
      caseless: true,
      aliases: { h1: "http/1", h2: "http/2", h3: "http/3" },
      read: (r) => one(r.httpVersion),
    },
  },
  {
    name: "client",
    phrase: "the client address",
    reads: "columns",
    value: { type: "text", literal: "contains", fold: "ascii", read: (r) => one(r.clientAddress) },
  },
  {
    name: "session",
    phrase: "the session",
    reads: "columns",
    value: { type: "text", literal: "equals", fold: "ascii", read: (r) => [r.sessionId] },
  },
  {
    name: "state",
    phrase: "the state",
    reads: "columns",
    value: {
      type: "text",
      literal: "equals",
      fold: "ascii",
      caseless: true,
      columns: ["state"],
      choices: ["pending", "complete", "failed", "closed"],
      aliases: { completed: "complete", error: "failed", running: "pending", cancelled: "closed", canceled: "closed" },
      read: (r) => [r.state],
    },
  },
  {
    name: "modified",
    phrase: "modified on the way",
    reads: "columns",
    value: { ...BOOLEAN, read: (r: QueryRecord) => [String(r.modified)] },
  },
  {
    name: "applied",
    phrase: "a kind of rule that touched it",
    reads: "columns",
    value: {
      type: "text",
      literal: "equals",
      fold: "ascii",
      caseless: true,
      choices: ["block", "rewrite", "mock", "breakpoint", "throttle", "script", "plugin"],
      read: (r) => r.applied,
    },
  },
  {
    name: "passthrough",
    phrase: "passed through unread",
    reads: "columns",
    value: { ...BOOLEAN, columns: ["isPassthrough"], read: (r: QueryRecord) => [String(r.isPassthrough)] },
  },
  {
    name: "note",
    phrase: "the note",
    reads: "columns",
    value: { type: "text", literal: "contains", fold: "unicode", read: (r) => one(r.note) },
  },
  {
    name: "time",
    phrase: "the start time",
    reads: "columns",
    value: { type: "number", unit: "time", column: "timestampMs", read: (r) => r.timestampMs },
  },
  {
    name: "id",
    phrase: "the id",
    reads: "columns",
    value: { type: "text", literal: "equals", fold: "ascii", caseless: true, columns: ["id"], read: (r) => [r.id] },
  },
  {
    name: "seq",
    phrase: "the sequence number",
    reads: "columns",
    value: { type: "number", unit: "count", column: "seq", read: (r) => r.seq },
  },
];

const BY_NAME = new Map(FIELDS.flatMap((field) => [field.name, ...(field.aliases ?? [])].map((name) => [name, field])));

/** Finds a field by name or alias, whatever the case. */
export function findField(name: string): Field | undefined {
  return BY_NAME.get(foldAscii(name));
}

/** The field of an already parsed query. Throws on a name that no row defines: the query did not come from the parser. */
export function fieldOf(name: string): Field {
  const field = findField(name);
  if (field === undefined) throw new RangeError(`no field is called \`${name}\``);
  return field;
}

/** All names a user may write before a colon. */
export function fieldNames(): readonly string[] {
  return [...FIELDS.map((field) => field.name), "since", "before", "json"];
}

/** Whether a test of a field may hold for the readable form of a value only. */
export function asksReadableForm({ readable }: TextField, { values }: TextTest): boolean {
  return readable !== undefined && values.some(asksReadableValue);
}

/** Whether a value may be found in the readable form of a URL only. */
function asksReadableValue(value: TextValue): boolean {
  if (value.kind === "wildcard") return value.parts.some((part) => asksReadable(part));
  return value.kind === "literal" ? asksReadable(value.text) : asksReadable(value.source, true);
}

/** A value as the field has it. Wildcards and patterns are taken as written. */
export function bareValue(field: Field, value: TextValue): TextValue {
  const bare = field.value.type === "text" ? field.value.bare : undefined;
  return bare === undefined || value.kind !== "literal" ? value : { kind: "literal", text: bare(value.text) };
}

/** The last segment but one of a call's path, or the last; none for exchanges that are no gRPC. */
function parts(requestType: string | undefined, path: string, which: 0 | 1): readonly string[] {
  if (requestType === undefined || !/^application\/grpc(?:$|[-+])/iu.test(requestType)) return [];
  const segments = path.split("/").slice(-2);
  const part = segments[which];
  return segments.length < 2 || segments.includes("") || part === undefined ? [] : [part];
}
