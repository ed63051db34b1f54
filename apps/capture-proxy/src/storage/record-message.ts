// Tested by open-capture-store.test.ts
import type { Failure, TlsInfo } from "@headworks/capture-contract";
import type { RawFields } from "@headworks/http1";
import { stageTimings } from "#exchange/exchange.ts";
import type { ExchangeView, UpstreamTlsFacts } from "#exchange/exchange.ts";
import { effectOf } from "./rule-effects.ts";
import type { EffectRecord } from "./rule-effects.ts";
import type { BodyCapture } from "#exchange/body.ts";
import { BODY_STATES, durationUs, flagsOf, readFields, resourceTypeOf, stateCode, ttfbUs } from "./entry-facts.ts";

/**
 * One entry on its way to the writer, as a JSON array. It travels in three lines of text (this, the request's
 * fields, the answer's fields or nothing): JSON has no raw line ends, and the writer stores the field lines unread.
 */
export type EntryRecord = [
  seq: number,
  /** The entry was recorded before, while it was running. */
  again: 0 | 1,
  id: string,
  sessionNumber: number,
  state: 0 | 1 | 2,
  startedMs: number,
  method: string,
  scheme: string,
  host: string,
  port: number,
  path: string,
  status: number | null,
  statusMessage: string | null,
  requestType: string | null,
  responseType: string | null,
  resourceType: string,
  durationUs: number | null,
  ttfbUs: number | null,
  requestSize: number,
  responseSize: number | null,
  requestVersion: string | null,
  responseVersion: string | null,
  flags: number,
  source: string,
  clientAddress: string | null,
  serverAddress: string | null,
  connection: number | null,
  timings: (number | null)[],
  requestTrailers: RawFields | null,
  responseTrailers: RawFields | null,
  failure: Failure | null,
  tls: TlsInfo | null,
  requestBody: BodyRecord,
  responseBody: BodyRecord,
  /** Only imported entries come with one. */
  note: string | null,
  effect: EffectRecord | null,
];

/** `inlineBytes` are taken from the batch's buffer in order; `spooled` names a body that was sent ahead. */
export type BodyRecord = [size: number, stored: number, state: number, inlineBytes: number, spooled: number];

const NO_BODY: BodyRecord = [0, 0, 0, 0, 0];

/** Text of an exchange; `storesBodies` false says that its bodies are shed. Bodies of running exchanges are left out. */
export function encodeRecord(
  seq: number,
  again: boolean,
  sessionNumber: number,
  exchange: ExchangeView,
  storesBodies: boolean,
): string {
  const { request, response, moments, state, client } = exchange;
  const requestFacts = readFields(request.fields);
  const responseFacts = response === undefined ? undefined : readFields(response.fields);
  const requestType = requestFacts.mediaType;
  const responseType = responseFacts?.mediaType ?? null;
  const status = response?.status ?? null;
  const passthrough = exchange.passthrough;
  const timings = stageTimings(moments);
  const code = stateCode(state);
  const record: EntryRecord = [
    seq,
    again ? 1 : 0,
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
    client.address,
    exchange.serverAddress ?? null,
    client.connection,
    [timings.blocked, timings.dns, timings.connect, timings.tls, timings.send, timings.wait, timings.receive],
    request.trailers ?? null,
    response?.trailers ?? null,
    state.step === "failed" ? failureOf(state.failure) : null,
    tlsOf(exchange),
    bodyRecord(exchange.requestBody, code, storesBodies),
    bodyRecord(exchange.responseBody, code, storesBodies),
    null,
    code === 0 ? null : (effectOf(exchange) ?? null),
  ];
  const responseLine = response === undefined ? "" : JSON.stringify(response.fields);
  return `${JSON.stringify(record)}\n${JSON.stringify(request.fields)}\n${responseLine}`;
}

/** The cause stays out: it may be anything, and the message says what matters. */
function failureOf(failure: Failure): Failure {
  return { stage: failure.stage, side: failure.side, code: failure.code, message: failure.message };
}

function bodyRecord(body: BodyCapture, state: 0 | 1 | 2, stores: boolean): BodyRecord {
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

export const NOT_STORED = BODY_STATES.indexOf("not_stored");

/** Bytes of a body that travel with its entry. */
function inlineBytes(body: BodyCapture): number {
  let bytes = 0;
  for (const piece of body.pieces) bytes += piece.length;
  return bytes;
}

/** All exchanges of a connection share its facts, so what is made of them is kept as long as they are. */
const upstreamParts = new WeakMap<UpstreamTlsFacts, typeof NO_UPSTREAM_TLS>();

function tlsOf(exchange: ExchangeView): TlsInfo | null {
  const { tls, sni } = exchange.client;
  const upstream = exchange.upstreamTls;
  if (tls === undefined && upstream === undefined && sni === undefined) return null;
  const client = { client_version: tls?.version ?? null, client_cipher: tls?.cipher ?? null, sni: sni ?? null };
  if (upstream === undefined) return { ...client, ...NO_UPSTREAM_TLS };
  let known = upstreamParts.get(upstream);
  if (known === undefined) upstreamParts.set(upstream, (known = upstreamPart(upstream)));
  return { ...client, ...known };
}

const NO_UPSTREAM_TLS: Omit<TlsInfo, "client_version" | "client_cipher" | "sni"> = {
  upstream_version: null,
  upstream_cipher: null,
  upstream_verified: null,
  upstream_subject: null,
  upstream_issuer: null,
  upstream_valid_to: null,
};

function upstreamPart(upstream: UpstreamTlsFacts): typeof NO_UPSTREAM_TLS {
  return {
    upstream_version: upstream.version,
    upstream_cipher: upstream.cipher,
    upstream_verified: upstream.verified,
    upstream_subject: upstream.subject ?? null,
    upstream_issuer: upstream.issuer ?? null,
    upstream_valid_to: moment(upstream.validToMs),
  };
}

/** Certificates may carry dates that JavaScript has no words for. */
function moment(ms: number | undefined): string | null {
  return ms !== undefined && Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : null;
}
