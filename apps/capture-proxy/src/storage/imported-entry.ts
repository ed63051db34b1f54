// Tested by traffic-transfer.test.ts
import { randomUUID } from "node:crypto";
import type { Failure, RequestData, ResponseData, Timings, TlsInfo, TrafficEntry } from "@headworks/capture-contract";
import type { HarBody, HarExchange } from "@headworks/har";
import {
  BODY_STATES,
  ENTRY_STATES,
  FLAG_MODIFIED,
  FLAG_PASSTHROUGH,
  FLAG_SCRIPTED,
  readFields,
  resourceTypeOf,
} from "./entry-facts.ts";
import { NOT_STORED } from "./record-message.ts";
import type { BodyRecord, EntryRecord } from "./record-message.ts";

/** An entry ready for the writer. */
export interface ImportedEntry {
  /** The three lines of {@link EntryRecord}. */
  readonly text: string;
  readonly bodies: readonly Uint8Array[];
}

interface Message {
  readonly fields: readonly string[];
  readonly trailers: readonly string[] | null;
  readonly body: Uint8Array | undefined;
  readonly bodySize: number;
  readonly bodyState: number;
}

interface Facts {
  readonly state: number;
  readonly startedMs: number;
  readonly method: string;
  readonly url: string;
  readonly status: number | null;
  readonly statusMessage: string | null;
  readonly durationUs: number | null;
  readonly ttfbUs: number | null;
  readonly requestVersion: string | null;
  readonly responseVersion: string | null;
  readonly flags: number;
  readonly source: string;
  readonly clientAddress: string | null;
  readonly serverAddress: string | null;
  readonly connection: number | null;
  readonly timings: (number | null)[];
  readonly failure: Failure | null;
  readonly tls: TlsInfo | null;
  readonly note: string | null;
  readonly request: Message;
  readonly response: Message | undefined;
}

/** Entries get new ids: the file may come from this very store. Bodies beyond `maxBodyBytes` are cut. */
function encode(facts: Facts, sessionNumber: number, maxBodyBytes: number): ImportedEntry {
  const { scheme, host, port, path } = partsOfUrl(facts.url);
  const requestFacts = readFields(facts.request.fields);
  const responseFacts = facts.response === undefined ? undefined : readFields(facts.response.fields);
  const requestType = requestFacts.mediaType;
  const responseType = responseFacts?.mediaType ?? null;
  const request = cutBody(facts.request, maxBodyBytes);
  const response = cutBody(facts.response, maxBodyBytes);
  const passthrough = (facts.flags & FLAG_PASSTHROUGH) !== 0;
  const hints = { scheme, method: facts.method, path, status: facts.status, requestType, responseType, passthrough };
  const record: EntryRecord = [
    0,
    0,
    randomUUID(),
    sessionNumber,
    facts.state as 0 | 1 | 2,
    facts.startedMs,
    facts.method,
    scheme,
    host,
    port,
    path,
    facts.status,
    facts.statusMessage,
    requestType,
    responseType,
    resourceTypeOf(hints),
    facts.durationUs,
    facts.ttfbUs,
    requestFacts.sizeBytes + request.record[0],
    responseFacts === undefined ? null : responseFacts.sizeBytes + response.record[0],
    facts.requestVersion,
    facts.responseVersion,
    facts.flags,
    facts.source,
    facts.clientAddress,
    facts.serverAddress,
    facts.connection,
    facts.timings,
    facts.request.trailers === null ? null : [...facts.request.trailers],
    facts.response?.trailers === null || facts.response === undefined ? null : [...facts.response.trailers],
    facts.failure,
    facts.tls,
    request.record,
    response.record,
    facts.note,
  ];
  const responseLine = facts.response === undefined ? "" : JSON.stringify(facts.response.fields);
  return {
    text: `${JSON.stringify(record)}\n${JSON.stringify(facts.request.fields)}\n${responseLine}`,
    bodies: [request.bytes, response.bytes].filter((bytes) => bytes !== undefined),
  };
}

function cutBody(
  message: Message | undefined,
  maxBytes: number,
): { record: BodyRecord; bytes: Uint8Array | undefined } {
  const whole = message?.body;
  if (message === undefined || whole === undefined || whole.length === 0) {
    return { record: [message?.bodySize ?? 0, 0, message?.bodyState ?? 0, 0, 0], bytes: undefined };
  }
  const bytes = whole.length > maxBytes ? whole.subarray(0, maxBytes) : whole;
  const state = bytes.length < whole.length ? BODY_STATES.indexOf("truncated") : message.bodyState;
  return { record: [message.bodySize, bytes.length, state, bytes.length, 0], bytes };
}

/** Throws for what is no absolute URL. */
function partsOfUrl(text: string): { scheme: string; host: string; port: number; path: string } {
  const match = /^([a-z][a-z0-9+.-]*):\/\/(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)(?::(\d{1,5}))?([^#]*)/iu.exec(text);
  const [, written = "", host = "", port, rest = ""] = match ?? [];
  const scheme = written.toLowerCase();
  if (match === null || host === "" || !["http", "https", "ws", "wss", "tcp"].includes(scheme)) {
    throw new Error(`\`${text.slice(0, 100)}\` is no URL that can be captured`);
  }
  const standard = scheme === "https" || scheme === "wss" ? 443 : 80;
  const path = rest === "" ? "/" : rest.startsWith("?") ? `/${rest}` : rest;
  return {
    scheme,
    host: host.toLowerCase().replaceAll(/[[\]]/gu, ""),
    port: port === undefined ? standard : Number(port),
    path,
  };
}

/** What `weir.more` of a HAR holds beyond HAR's own members; written by the export. */
export interface HarExtras {
  readonly state?: TrafficEntry["state"];
  readonly failure?: Failure | null;
  readonly tls?: TlsInfo | null;
  readonly source?: TrafficEntry["source"];
  readonly flags?: number;
}

/** An entry of a HAR. Bodies that other programs decoded lose the field that names the coding. Throws for unusable entries. */
export function importedHarExchange(exchange: HarExchange, sessionNumber: number, maxBodyBytes: number): ImportedEntry {
  const { request, response, timings, weir } = exchange;
  const extras = extrasOf(weir.more);
  const stages = [
    timings.blocked,
    timings.dns,
    timings.connect,
    timings.tls,
    timings.send,
    timings.wait,
    timings.receive,
  ];
  const totalMs = stages.reduce<number>((sum, stage) => sum + (stage ?? 0), 0);
  const firstMs = totalMs - (timings.receive ?? 0);
  const isFailed = extras.state === "failed" || (response === undefined && weir.failure !== undefined);
  const facts: Facts = {
    state: ENTRY_STATES.indexOf(isFailed || response === undefined ? "failed" : "complete"),
    startedMs: exchange.startedMs,
    method: request.method,
    url: request.url,
    status: response?.status ?? null,
    statusMessage: response?.reason ?? null,
    durationUs: Math.round(totalMs * 1000),
    ttfbUs: response === undefined ? null : Math.round(firstMs * 1000),
    requestVersion: request.httpVersion || null,
    responseVersion: response?.httpVersion || null,
    flags: typeof extras.flags === "number" ? extras.flags & 7 : weir.isPassthrough ? FLAG_PASSTHROUGH : 0,
    source: sourceOf(extras.source),
    clientAddress: exchange.clientAddress ?? null,
    serverAddress: exchange.serverAddress ?? null,
    connection:
      exchange.connectionId !== undefined && /^\d{1,15}$/u.test(exchange.connectionId)
        ? Number(exchange.connectionId)
        : null,
    timings: stages.map((stage) => stage ?? null),
    failure:
      failureOf(extras.failure) ??
      (weir.failure === undefined
        ? null
        : { stage: "receive", side: "upstream", code: "INTERNAL", message: weir.failure }),
    tls: tlsOf(extras.tls),
    note: exchange.note ?? null,
    request: harMessage(request.fields, request.body),
    response: response === undefined ? undefined : harMessage(response.fields, response.body),
  };
  return encode(facts, sessionNumber, maxBodyBytes);
}

function harMessage(fields: readonly string[], body: HarBody | undefined): Message {
  if (body === undefined) return { fields, trailers: null, body: undefined, bodySize: 0, bodyState: 0 };
  const state = body.isTruncated ? "truncated" : body.bytes.length === 0 ? "none" : "complete";
  return {
    fields: body.isEncoded ? fields : withoutField(fields, "content-encoding"),
    trailers: null,
    body: body.bytes,
    bodySize: Math.max(body.bytes.length, body.isEncoded || body.isTruncated ? (body.transferredBytes ?? 0) : 0),
    bodyState: BODY_STATES.indexOf(state),
  };
}

function withoutField(fields: readonly string[], lowerName: string): string[] {
  const kept: string[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = fields[index] ?? "";
    if (name.toLowerCase() !== lowerName) kept.push(name, fields[index + 1] ?? "");
  }
  return kept;
}

/** An entry of a native export. Throws for what is none. */
export function importedEntry(value: unknown, sessionNumber: number, maxBodyBytes: number): ImportedEntry {
  if (!isEntry(value)) throw new Error("this is no traffic entry");
  const { request, response, timings } = value;
  const isPending = value.state === "pending";
  const firstStages = [timings.blocked, timings.dns, timings.connect, timings.tls, timings.send, timings.wait];
  const durationMs = Number(response?.duration_ms ?? 0);
  const facts: Facts = {
    state: ENTRY_STATES.indexOf(isPending ? "failed" : value.state),
    startedMs: Date.parse(value.timestamp),
    method: request.method,
    url: request.url,
    status: response?.status_code ?? null,
    statusMessage: textOrNull(response?.status_message),
    durationUs: response === null ? null : wholeNumber(durationMs * 1000),
    ttfbUs: response === null ? null : wholeNumber((durationMs - (timings.receive ?? 0)) * 1000),
    requestVersion: textOrNull(request.http_version),
    responseVersion: textOrNull(response?.http_version),
    flags:
      (value.modified ? FLAG_MODIFIED : 0) |
      (value.is_passthrough ? FLAG_PASSTHROUGH : 0) |
      (value.script_intercepted ? FLAG_SCRIPTED : 0),
    source: sourceOf(value.source),
    clientAddress: textOrNull(value.client_addr),
    serverAddress: textOrNull(value.server_addr),
    connection: Number.isSafeInteger(value.connection_id) ? value.connection_id : null,
    timings: [...firstStages, timings.receive],
    failure: failureOf(value.failure),
    tls: tlsOf(value.tls),
    note: textOrNull(value.notes),
    request: nativeMessage(request),
    response: response === null ? undefined : nativeMessage(response),
  };
  if (!Number.isFinite(facts.startedMs)) throw new Error("its timestamp is no time");
  return encode(facts, sessionNumber, maxBodyBytes);
}

function isEntry(value: unknown): value is TrafficEntry {
  if (typeof value !== "object" || value === null) return false;
  const entry = value as Partial<Record<keyof TrafficEntry, unknown>>;
  const isMessage = (message: unknown): boolean =>
    typeof message === "object" && message !== null && "headers_list" in message && isPairs(message.headers_list);
  const { request, response, timings, state } = entry;
  const isTimings = (stages: unknown): stages is Timings => typeof stages === "object" && stages !== null;
  return (
    isMessage(request) &&
    typeof (request as RequestData).url === "string" &&
    typeof (request as RequestData).method === "string" &&
    (response === null || (isMessage(response) && Number.isInteger((response as ResponseData).status_code))) &&
    isTimings(timings) &&
    Object.values(timings).every((stage) => stage === null || typeof stage === "number") &&
    (ENTRY_STATES as readonly unknown[]).includes(state) &&
    typeof entry.timestamp === "string"
  );
}

function isPairs(value: unknown): value is [string, string][] {
  return (
    Array.isArray(value) &&
    value.every((pair: unknown) => Array.isArray(pair) && typeof pair[0] === "string" && typeof pair[1] === "string")
  );
}

function nativeMessage(message: RequestData | ResponseData): Message {
  const { body_encoding: encoding } = message;
  const body = textOrNull(message.body);
  const bytes =
    body === null
      ? undefined
      : encoding === "base64"
        ? Buffer.from(body.replace(/^base64:/u, ""), "base64")
        : Buffer.from(body, "utf8");
  const isMissing = bytes === undefined && message.body_stored_size > 0;
  return {
    fields: message.headers_list.flat(),
    trailers: isPairs(message.trailers_list) ? message.trailers_list.flat() : null,
    body: bytes,
    bodySize: wholeNumber(message.body_size),
    bodyState: isMissing ? NOT_STORED : Math.max(0, BODY_STATES.indexOf(message.body_state)),
  };
}

function extrasOf(more: Readonly<Record<string, unknown>> | undefined): HarExtras {
  return more ?? {};
}

const SOURCES: readonly unknown[] = ["upstream", "slice"];

function sourceOf(value: unknown): string {
  return SOURCES.includes(value) ? String(value) : "import";
}

/** Files come from anywhere: only what a failure may be is taken over. */
function failureOf(value: unknown): Failure | null {
  if (typeof value !== "object" || value === null) return null;
  const { stage, side, code, message } = value as Partial<Record<keyof Failure, unknown>>;
  if (typeof code !== "string" || typeof message !== "string") return null;
  const known = FAILURE_STAGES.find((name) => name === stage) ?? "receive";
  return {
    stage: known,
    side: FAILURE_SIDES.find((name) => name === side) ?? "internal",
    code: code.slice(0, 64),
    message,
  };
}

const FAILURE_STAGES = [
  "resolve",
  "connect",
  "proxy-handshake",
  "tls",
  "send",
  "receive",
  "client-read",
  "client-write",
  "policy",
] as const;
const FAILURE_SIDES = ["client", "upstream", "internal"] as const;

function tlsOf(value: unknown): TlsInfo | null {
  if (typeof value !== "object" || value === null) return null;
  const tls = value as Partial<Record<keyof TlsInfo, unknown>>;
  return {
    client_version: textOrNull(tls.client_version),
    client_cipher: textOrNull(tls.client_cipher),
    sni: textOrNull(tls.sni),
    upstream_version: textOrNull(tls.upstream_version),
    upstream_cipher: textOrNull(tls.upstream_cipher),
    upstream_verified: typeof tls.upstream_verified === "boolean" ? tls.upstream_verified : null,
    upstream_subject: textOrNull(tls.upstream_subject),
    upstream_issuer: textOrNull(tls.upstream_issuer),
    upstream_valid_to: textOrNull(tls.upstream_valid_to),
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function wholeNumber(value: unknown): number {
  const number = Math.round(Number(value));
  return Number.isSafeInteger(number) && number > 0 ? number : 0;
}
