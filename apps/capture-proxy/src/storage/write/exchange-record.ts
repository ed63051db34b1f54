import type { Failure, ResourceType, RuleTrace, TlsInfo, TrafficSnapshot } from "@headworks/capture-contract";
import { resourceType } from "@headworks/http-fields";
import type { BodyCapture } from "#exchange/body.ts";
import { exchangeUrl, isClosedByClient, stageTimings } from "#exchange/exchange.ts";
import type { ExchangeFacts, Moments, Original, TraceStep, UpstreamTlsFacts } from "#exchange/exchange.ts";
import {
  BODY_STATES,
  ENTRY_STATES,
  entryText,
  FLAG_MODIFIED,
  FLAG_PASSTHROUGH,
  FLAG_SCRIPTED,
  flagsOfKinds,
  kindsOfFlags,
  NO_BODY,
  NOT_STORED,
  RECORDED_BEFORE,
  tlsText,
} from "./entry-record.ts";
import type { BodyRecord, EffectRecord, EntryRecord, EntryStateCode, RecordedBefore } from "./entry-record.ts";

/** Encodes an exchange. Bodies are omitted while it runs and if `storesBodies` is false. */
export function encodeRecord(
  seq: number,
  before: RecordedBefore,
  sessionNumber: number,
  exchange: ExchangeFacts,
  storesBodies: boolean,
): string {
  const { request, response, moments, state, client } = exchange;
  const requestFacts = readFields(request.fields);
  const responseFacts = response === undefined ? undefined : readFields(response.fields);
  const requestType = requestFacts.mediaType;
  const responseType = responseFacts?.mediaType ?? null;
  const status = response?.status ?? null;
  const passthrough = exchange.passthrough;
  const { blocked, dns, connect, tls, send, wait, receive } = stageTimings(moments);
  const code = stateCode(exchange);
  const record: EntryRecord = [
    seq,
    RECORDED_BEFORE.indexOf(before),
    exchange.id,
    sessionNumber,
    code,
    exchange.startedAtMs,
    request.method,
    request.scheme,
    request.host,
    request.port,
    request.path,
    status,
    response?.reason ?? null,
    requestType,
    responseType,
    resourceTypeOf({
      scheme: request.scheme,
      method: request.method,
      path: request.path,
      status,
      requestType,
      responseType,
      passthrough,
    }),
    durationUs(moments),
    ttfbUs(moments),
    requestFacts.sizeBytes + exchange.requestBody.sizeBytes,
    responseFacts === undefined ? null : responseFacts.sizeBytes + exchange.responseBody.sizeBytes,
    request.version,
    response?.version ?? null,
    flagsOf(exchange),
    exchange.source,
    client.address ?? null,
    exchange.serverAddress ?? null,
    client.connection ?? null,
    `[${blocked},${dns},${connect},${tls},${send},${wait},${receive}]`,
    request.trailers ?? null,
    response?.trailers ?? null,
    state.step === "failed" ? failureOf(state.failure) : null,
    bodyRecord(exchange.requestBody, code, storesBodies),
    bodyRecord(exchange.responseBody, code, storesBodies),
    exchange.note ?? null,
    code === 0 ? null : (effectOf(exchange, storesBodies) ?? null),
  ];
  return entryText(record, request, response, connectionTls(exchange));
}

/** Copies all but the cause, which may be any object. */
function failureOf(failure: Failure): Failure {
  return { stage: failure.stage, side: failure.side, code: failure.code, message: failure.message };
}

function bodyRecord(body: BodyCapture, state: EntryStateCode, stores: boolean): BodyRecord {
  if (body.sizeBytes === 0) return NO_BODY;
  if (state === 0 || !stores) return [body.sizeBytes, 0, NOT_STORED, 0, 0];
  const spooled = body.spooled?.id ?? 0;
  return [
    body.sizeBytes,
    body.storedBytes,
    BODY_STATES.indexOf(body.state),
    spooled === 0 ? inlineBytes(body) : 0,
    spooled,
  ];
}

/** Body bytes sent with the entry. */
function inlineBytes(body: BodyCapture): number {
  let bytes = 0;
  for (const piece of body.pieces) bytes += piece.length;
  return bytes;
}

interface ConnectionTls {
  readonly client: ExchangeFacts["client"];
  readonly text: string;
}

/** Encoded TLS facts by upstream connection: its exchanges, and mostly their clients, share them. */
const textsByUpstream = new WeakMap<UpstreamTlsFacts, ConnectionTls>();

/** TLS facts of both connections as stored; empty without TLS. */
function connectionTls({ client, upstreamTls: upstream }: ExchangeFacts): string {
  if (upstream === undefined) {
    const hasNone = client.tls === undefined && client.sni === undefined;
    return hasNone ? "" : tlsText({ ...clientPart(client), ...NO_UPSTREAM_TLS });
  }
  const known = textsByUpstream.get(upstream);
  if (known !== undefined && isSameTls(known.client, client)) return known.text;
  const text = tlsText({ ...clientPart(client), ...upstreamPart(upstream) });
  textsByUpstream.set(upstream, { client, text });
  return text;
}

function isSameTls(a: ExchangeFacts["client"], b: ExchangeFacts["client"]): boolean {
  if (a.sni !== b.sni) return false;
  return a.tls === b.tls || (a.tls?.version === b.tls?.version && a.tls?.cipher === b.tls?.cipher);
}

function clientPart({ tls, sni }: ExchangeFacts["client"]): Pick<TlsInfo, "client_version" | "client_cipher" | "sni"> {
  return { client_version: tls?.version ?? null, client_cipher: tls?.cipher ?? null, sni: sni ?? null };
}

const NO_UPSTREAM_TLS: Omit<TlsInfo, "client_version" | "client_cipher" | "sni"> = {
  upstream_version: null,
  upstream_cipher: null,
  upstream_verified: null,
  upstream_subject: null,
  upstream_issuer: null,
  upstream_valid_to: null,
  upstream_client_certificate: null,
};

function upstreamPart(upstream: UpstreamTlsFacts): typeof NO_UPSTREAM_TLS {
  return {
    upstream_version: upstream.version,
    upstream_cipher: upstream.cipher,
    upstream_verified: upstream.verified,
    upstream_subject: upstream.subject ?? null,
    upstream_issuer: upstream.issuer ?? null,
    upstream_valid_to: moment(upstream.validToMs),
    upstream_client_certificate: upstream.clientCertificate ?? null,
  };
}

/** Certificate dates may exceed the range of `Date`. */
function moment(ms: number | undefined): string | null {
  return ms !== undefined && Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : null;
}

/**
 * Rule effects of a finished exchange; undefined if no rule applied. `storesBodies` false sheds replaced bodies, too.
 */
function effectOf(
  { trace, originalRequest, originalResponse }: ExchangeFacts,
  storesBodies: boolean,
): EffectRecord | undefined {
  if (trace === undefined && originalRequest === undefined && originalResponse === undefined) return undefined;
  return {
    trace: (trace ?? []).map(traceOf),
    request: originalRequest?.message ?? null,
    response: originalResponse?.message ?? null,
    requestBytes: (storesBodies ? originalRequest?.body?.length : undefined) ?? -1,
    responseBytes: (storesBodies ? originalResponse?.body?.length : undefined) ?? -1,
  };
}

function traceOf({ kind, ruleId, ruleName, phase, changes }: TraceStep): RuleTrace {
  return { kind, rule_id: ruleId, rule_name: ruleName, phase, changes: [...changes] };
}

/** In the order of {@link EffectRecord}. */
export function replacedBodies({ originalRequest, originalResponse }: ExchangeFacts): Buffer[] {
  return [originalRequest, originalResponse].flatMap((original: Original<unknown> | undefined) => original?.body ?? []);
}

/** The list row of a live exchange, equal to the stored one. */
export function snapshotOfExchange(seq: number, sessionId: string, exchange: ExchangeFacts): TrafficSnapshot {
  const { request, response, moments, state } = exchange;
  const requestFacts = readFields(request.fields);
  const responseFacts = response === undefined ? undefined : readFields(response.fields);
  const duration = durationUs(moments);
  const ttfb = ttfbUs(moments);
  const responseType = responseFacts?.mediaType ?? null;
  return {
    id: exchange.id,
    seq,
    session_id: sessionId,
    state: ENTRY_STATES[stateCode(exchange)],
    method: request.method,
    url: exchangeUrl(request),
    scheme: request.scheme,
    host: request.host,
    path: request.path,
    status_code: response?.status ?? null,
    status_message: response?.reason ?? null,
    content_type: requestFacts.mediaType,
    response_content_type: responseType,
    resource_type: resourceTypeOf({
      scheme: request.scheme,
      method: request.method,
      path: request.path,
      status: response?.status ?? null,
      requestType: requestFacts.mediaType,
      responseType,
      passthrough: exchange.passthrough,
    }),
    duration_ms: duration === null ? null : duration / 1000,
    ttfb_ms: ttfb === null ? null : ttfb / 1000,
    request_size: requestFacts.sizeBytes + exchange.requestBody.sizeBytes,
    response_size: responseFacts === undefined ? null : responseFacts.sizeBytes + exchange.responseBody.sizeBytes,
    timestamp: new Date(exchange.startedAtMs).toISOString(),
    modified: exchange.modified,
    applied: exchange.trace === undefined ? [] : kindsOfFlags(flagsOfKinds(exchange.trace)),
    has_request_body: exchange.requestBody.sizeBytes > 0,
    has_response_body: exchange.responseBody.sizeBytes > 0,
    is_passthrough: exchange.passthrough,
    http_version: response?.version ?? request.version,
    script_intercepted: isScripted(exchange),
    device_id: null,
    client_addr: exchange.client.address ?? null,
    server_addr: exchange.serverAddress ?? null,
    failure_code: state.step === "failed" ? state.failure.code : null,
    source: exchange.source,
    has_note: exchange.note !== undefined,
    timings: stageTimings(moments),
  };
}

export interface FieldFacts {
  /** Sum of `name: value` and CRLF over all fields. */
  readonly sizeBytes: number;
  /** Lower case, without parameters. */
  readonly mediaType: string | null;
}

/** The first Content-Type counts. */
export function readFields(fields: readonly string[]): FieldFacts {
  let sizeBytes = 0;
  let mediaType: string | null = null;
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = fields[index] ?? "";
    const value = fields[index + 1] ?? "";
    sizeBytes += name.length + value.length + 4;
    if (name.length === 12 && mediaType === null && name.toLowerCase() === "content-type") {
      mediaType = withoutParameters(value);
    }
  }
  return { sizeBytes, mediaType };
}

/** Media type of a Content-Type value; null if there is none. */
export function withoutParameters(value: string): string | null {
  const end = value.indexOf(";");
  const type = (end === -1 ? value : value.slice(0, end)).trim().toLowerCase();
  return type === "" ? null : type;
}

function stateCode(exchange: Pick<ExchangeFacts, "state" | "response">): EntryStateCode {
  const { step } = exchange.state;
  if (step === "completed") return 1;
  return step === "failed" ? (isClosedByClient(exchange) ? 3 : 2) : 0;
}

/** In microseconds from the first moment to the end; null while running. */
function durationUs(moments: Readonly<Moments>): number | null {
  return moments.ended > 0 ? microseconds(moments.ended - moments.started) : null;
}

/** In microseconds to the first response byte; null without one. */
function ttfbUs(moments: Readonly<Moments>): number | null {
  return moments.firstByte > 0 ? microseconds(moments.firstByte - moments.started) : null;
}

/** Rounded to 10 µs like the phase timings. */
function microseconds(milliseconds: number): number {
  return Math.max(0, Math.round(milliseconds * 100)) * 10;
}

function isScripted({ trace }: ExchangeFacts): boolean {
  return trace?.some(({ kind }) => kind === "script" || kind === "plugin") === true;
}

function flagsOf(exchange: ExchangeFacts): number {
  const kinds =
    exchange.trace === undefined ? 0 : flagsOfKinds(exchange.trace) | (isScripted(exchange) ? FLAG_SCRIPTED : 0);
  return (exchange.modified ? FLAG_MODIFIED : 0) | (exchange.passthrough ? FLAG_PASSTHROUGH : 0) | kinds;
}

export interface ResourceHints {
  readonly scheme: string;
  readonly method: string;
  /** With query. */
  readonly path: string;
  readonly status: number | null;
  readonly requestType: string | null;
  readonly responseType: string | null;
  readonly passthrough: boolean;
}

/** Falls back to the request if the response is inconclusive. */
export function resourceTypeOf(hints: ResourceHints): ResourceType {
  if (hints.passthrough || hints.method === "CONNECT" || hints.scheme === "tcp") return "tunnel";
  if (hints.scheme === "ws" || hints.scheme === "wss" || hints.status === 101) return "websocket";
  const { responseType, requestType } = hints;
  if (requestType?.startsWith("application/grpc") === true) return "grpc";
  const byType = responseType === null ? "other" : typeOfMedia(responseType);
  if (byType !== "other" && byType !== "binary") return byType;
  const byPath = resourceType(responseType ?? undefined, hints.path);
  return byPath === "other" && requestType !== null ? typeOfMedia(requestType) : byPath;
}

const MEDIA_TYPES = new Map<string, ResourceType>();
const MAX_MEDIA_TYPES = 1024;

/** A cheap classification: parsing would dominate, and a cache would be unbounded. */
function typeOfMedia(mediaType: string): ResourceType {
  const known = MEDIA_TYPES.get(mediaType);
  if (known !== undefined) return known;
  const found = resourceType(mediaType, "/");
  if (MEDIA_TYPES.size < MAX_MEDIA_TYPES) MEDIA_TYPES.set(mediaType, found);
  return found;
}
