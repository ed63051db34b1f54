import type {
  Failure,
  RequestData,
  ResponseData,
  Timings,
  TrafficEntry,
  TrafficSnapshot,
} from "@headworks/capture-contract";
import { fieldValue } from "@headworks/http1";
import { exchangeUrl } from "#exchange/exchange.ts";
import type { Scheme } from "#exchange/exchange.ts";
import { bodyMembers, fieldPairs, joinedFields } from "#exchange/shown-message.ts";
import type { SqlRow } from "../database.ts";
import { entryState, FLAG_MODIFIED, FLAG_PASSTHROUGH, FLAG_SCRIPTED, kindsOfFlags } from "./entry-facts.ts";
import { parsed, storedTls } from "./stored-json.ts";
import { shownEffect } from "./rule-effects.ts";
import { BODY_STATES } from "../write/entry-record.ts";

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
export interface ShownBody {
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

function milliseconds(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value) / 1000;
}

function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
