import type {
  EntryState,
  Failure,
  RequestData,
  ResponseData,
  RuleTrace,
  Timings,
  TlsInfo,
  TrafficEntry,
  TrafficSnapshot,
} from "@headworks/capture-contract";
import { fieldValue, type RawFields } from "@headworks/http1";
import { exchangeUrl, type Scheme } from "#exchange/exchange.ts";
import { bodyMembers, fieldPairs, joinedFields, shownRequest, shownResponse } from "#exchange/shown-message.ts";
import type { BodyFacts } from "#exchange/shown-message.ts";
import type { SqlRow } from "../database.ts";
import {
  BODY_STATES,
  ENTRY_STATES,
  FLAG_MODIFIED,
  FLAG_PASSTHROUGH,
  FLAG_SCRIPTED,
  kindsOfFlags,
  TLS_COLUMNS,
} from "../write/entry-record.ts";
import type { EffectRecord, EntryStateCode } from "../write/entry-record.ts";

export interface FoundEntry {
  readonly row: SqlRow;
  readonly sessionId: string;
}

/** Maps an exported pending entry to failed. */
export function finalState(state: EntryState): EntryState {
  return state === "pending" ? "failed" : state;
}

export function entryState(row: SqlRow): EntryState {
  return ENTRY_STATES[Number(row["state"]) as EntryStateCode];
}

/** Default for entries of earlier versions. */
const NOT_KNOWN: Pick<TlsInfo, "upstream_client_certificate"> = { upstream_client_certificate: null };

/** JSON from a trusted column. */
export function parsed<T>(value: unknown): T | null {
  return typeof value === "string" ? (JSON.parse(value) as T) : null;
}

/** Fields from a trusted column: a JSON array or field lines. Throws SyntaxError if the file is corrupt. */
export function storedFields(value: unknown): RawFields | null {
  if (typeof value !== "string") return null;
  return value.startsWith("[") ? (JSON.parse(value) as RawFields) : fieldsOfLines(value);
}

function fieldsOfLines(lines: string): RawFields {
  const fields: RawFields = [];
  for (let at = 0; at < lines.length;) {
    const nameEnd = lines.indexOf(": ", at);
    const lineEnd = lines.indexOf("\r\n", at);
    if (nameEnd < 0 || lineEnd < nameEnd) throw new SyntaxError("Stored fields are damaged");
    fields.push(lines.slice(at, nameEnd), lines.slice(nameEnd + 2, lineEnd));
    at = lineEnd + 2;
  }
  return fields;
}

/** Reads the array of {@link tlsText}, or the object that earlier versions wrote. */
export function storedTls(value: unknown): TlsInfo | null {
  const tls = parsed<TlsInfo | readonly TlsInfo[keyof TlsInfo][]>(value);
  if (tls === null) return null;
  if (!Array.isArray(tls)) return { ...NOT_KNOWN, ...(tls as Partial<TlsInfo>) } as TlsInfo;
  return Object.fromEntries(TLS_COLUMNS.map((name, at) => [name, tls[at] ?? null])) as unknown as TlsInfo;
}

/** Columns of `entry` for a list row. */
export const SNAPSHOT_COLUMNS =
  "seq, id, state, started_ms, method, scheme, host, port, path, status, status_message, request_type, response_type, " +
  "resource_type, duration_us, ttfb_us, request_size, response_size, request_version, response_version, flags, source, " +
  "client_addr, server_addr, device_id, failure_code, note IS NOT NULL AS has_note, timings, " +
  "request_body_size, response_body_size";

export function snapshotOfRow(row: SqlRow, sessionId: string): TrafficSnapshot {
  const flags = Number(row["flags"]);
  return {
    id: String(row["id"]),
    seq: Number(row["seq"]),
    session_id: sessionId,
    state: entryState(row),
    method: String(row["method"]),
    url: urlOfRow(row),
    scheme: String(row["scheme"]),
    host: String(row["host"]),
    path: String(row["path"]),
    status_code: numberOrNull(row["status"]),
    status_message: textOrNull(row["status_message"]),
    content_type: textOrNull(row["request_type"]),
    response_content_type: textOrNull(row["response_type"]),
    resource_type: String(row["resource_type"]) as TrafficSnapshot["resource_type"],
    duration_ms: milliseconds(row["duration_us"]),
    ttfb_ms: milliseconds(row["ttfb_us"]),
    request_size: Number(row["request_size"]),
    response_size: numberOrNull(row["response_size"]),
    timestamp: new Date(Number(row["started_ms"])).toISOString(),
    modified: (flags & FLAG_MODIFIED) !== 0,
    applied: kindsOfFlags(flags),
    has_request_body: Number(row["request_body_size"]) > 0,
    has_response_body: Number(row["response_body_size"]) > 0,
    is_passthrough: (flags & FLAG_PASSTHROUGH) !== 0,
    http_version: textOrNull(row["response_version"]) ?? textOrNull(row["request_version"]),
    script_intercepted: (flags & FLAG_SCRIPTED) !== 0,
    device_id: textOrNull(row["device_id"]),
    client_addr: textOrNull(row["client_addr"]),
    server_addr: textOrNull(row["server_addr"]),
    failure_code: textOrNull(row["failure_code"]),
    source: String(row["source"]) as TrafficSnapshot["source"],
    has_note: row["has_note"] === undefined ? row["note"] !== null : Number(row["has_note"]) === 1,
    timings: timingsOf(row["timings"]),
  };
}

/** Absolute URL from method, scheme, host, port and path. */
export function urlOfRow(row: SqlRow): string {
  return exchangeUrl({
    method: String(row["method"]),
    scheme: String(row["scheme"]) as Scheme,
    host: String(row["host"]),
    port: Number(row["port"]),
    path: String(row["path"]),
    version: "HTTP/1.1",
    fields: [],
    trailers: undefined,
  });
}

/** A body as API responses show it. */
interface ShownBody {
  readonly bytes: Uint8Array | undefined;
  readonly fields: string[];
}

/** A full entry; bodies are passed separately because they may be decoded. */
export function entryOfRow(row: SqlRow, sessionId: string, request: ShownBody, response: ShownBody): TrafficEntry {
  const flags = Number(row["flags"]);
  const sent = requestOf(row, request);
  const delivered = row["response_fields"] === null ? null : responseOf(row, response);
  return {
    id: String(row["id"]),
    seq: Number(row["seq"]),
    session_id: sessionId,
    state: entryState(row),
    request: sent,
    response: delivered,
    ...shownEffect(row, sent, delivered, delivered?.duration_ms ?? 0),
    timestamp: new Date(Number(row["started_ms"])).toISOString(),
    modified: (flags & FLAG_MODIFIED) !== 0,
    notes: textOrNull(row["note"]),
    request_size: Number(row["request_size"]),
    response_size: numberOrNull(row["response_size"]),
    is_passthrough: (flags & FLAG_PASSTHROUGH) !== 0,
    script_intercepted: (flags & FLAG_SCRIPTED) !== 0,
    client_addr: textOrNull(row["client_addr"]),
    server_addr: textOrNull(row["server_addr"]),
    device_id: textOrNull(row["device_id"]),
    resource_type: String(row["resource_type"]) as TrafficEntry["resource_type"],
    timings: timingsOf(row["timings"]),
    failure: parsed<Failure>(row["failure"]),
    tls: storedTls(row["tls"]),
    source: String(row["source"]) as TrafficEntry["source"],
    connection_id: numberOrNull(row["connection_id"]),
  };
}

function requestOf(row: SqlRow, body: ShownBody): RequestData {
  const trailers = parsed<string[]>(row["request_trailers"]);
  return {
    method: String(row["method"]),
    url: urlOfRow(row),
    host: String(row["host"]),
    path: String(row["path"]),
    headers: joinedFields(body.fields),
    headers_list: fieldPairs(body.fields),
    ...(trailers !== null && { trailers_list: fieldPairs(trailers) }),
    ...storedBodyMembers(row, "request", body.bytes),
    content_type: fieldValue(body.fields, "content-type") ?? textOrNull(row["request_type"]),
    http_version: textOrNull(row["request_version"]),
  };
}

function responseOf(row: SqlRow, body: ShownBody): ResponseData {
  const trailers = parsed<string[]>(row["response_trailers"]);
  return {
    status_code: Number(row["status"]),
    status_message: textOrNull(row["status_message"]),
    headers: joinedFields(body.fields),
    headers_list: fieldPairs(body.fields),
    ...(trailers !== null && { trailers_list: fieldPairs(trailers) }),
    ...storedBodyMembers(row, "response", body.bytes),
    content_type: fieldValue(body.fields, "content-type") ?? textOrNull(row["response_type"]),
    duration_ms: milliseconds(row["duration_us"]) ?? 0,
    http_version: textOrNull(row["response_version"]),
  };
}

function storedBodyMembers(row: SqlRow, side: "request" | "response", bytes: Uint8Array | undefined) {
  return bodyMembers({
    bytes,
    sizeBytes: Number(row[`${side}_body_size`]),
    storedBytes: Number(row[`${side}_body_stored`]),
    state: BODY_STATES[Number(row[`${side}_body_state`]) as 0 | 1 | 2 | 3],
  });
}

function timingsOf(value: unknown): Timings {
  const [blocked = null, dns = null, connect = null, tls = null, send = null, wait = null, receive = null] =
    parsed<(number | null)[]>(value) ?? [];
  return { blocked, dns, connect, tls, send, wait, receive };
}

export function milliseconds(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value) / 1000;
}

export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

export function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** Columns of `effect` in addition to those of an entry and its head. */
export const EFFECT_COLUMNS =
  "f.trace, f.original, f.request_body AS original_request_body, f.response_body AS original_response_body, " +
  "length(f.request_body) AS original_request_bytes, length(f.response_body) AS original_response_bytes";

/** For responses without bodies. */
export function withoutReplacedBodies(row: SqlRow): SqlRow {
  return { ...row, original_request_body: null, original_response_body: null };
}

/** Body bytes that {@link shownEffect} adds: the replaced bodies, or the sent one again where only the head changed. */
export function originalBodyBytes(
  row: SqlRow,
  passedOn: { readonly request: number; readonly response: number },
): number {
  const original = parsed<Pick<EffectRecord, "request" | "response">>(row["original"]);
  const given = (side: "request" | "response"): number => {
    const replaced = row[`original_${side}_bytes`];
    return original?.[side] ? (typeof replaced === "number" ? replaced : passedOn[side]) : 0;
  };
  return given("request") + given("response");
}

type ShownEffect = {
  readonly trace: RuleTrace[];
  readonly original_request: RequestData | null;
  readonly original_response: ResponseData | null;
};

/** The body of the message as sent. */
type PassedOn = Pick<RequestData, "body" | "body_encoding" | "body_size" | "body_stored_size" | "body_state">;

/** Members of an entry that describe rule effects. A body that was not replaced is the sent one. */
export function shownEffect(
  row: SqlRow,
  request: PassedOn,
  response: PassedOn | null,
  durationMs: number,
): ShownEffect {
  const trace = parsed<RuleTrace[]>(row["trace"]) ?? [];
  const original = parsed<Pick<EffectRecord, "request" | "response">>(row["original"]);
  const [sent, received] = [original?.request, original?.response];
  return {
    trace,
    original_request: sent ? withBody((body) => shownRequest(sent, body), row, "request", request) : null,
    original_response: received
      ? withBody((body) => shownResponse(received, body, durationMs), row, "response", response)
      : null,
  };
}

/** Uses the replaced body if there is one, otherwise the sent one. */
function withBody<T extends RequestData | ResponseData>(
  show: (body: BodyFacts) => T,
  row: SqlRow,
  side: "request" | "response",
  passedOn: PassedOn | null,
): T {
  const replaced = row[`original_${side}_bytes`];
  if (typeof replaced === "number") {
    const bytes = row[`original_${side}_body`];
    return show({
      bytes: bytes instanceof Uint8Array && replaced > 0 ? bytes : undefined,
      sizeBytes: replaced,
      storedBytes: replaced,
      state: replaced === 0 ? "none" : "complete",
    });
  }
  if (passedOn === null) return show({ bytes: undefined, sizeBytes: 0, storedBytes: 0, state: "none" });
  const { body, body_encoding, body_size: sizeBytes, body_stored_size: storedBytes, body_state: state } = passedOn;
  return { ...show({ bytes: undefined, sizeBytes, storedBytes, state }), body, body_encoding };
}
