import type { Failure, TlsInfo } from "@headworks/capture-contract";
import { stageTimings } from "#exchange/exchange.ts";
import type { ExchangeView, UpstreamTlsFacts } from "#exchange/exchange.ts";
import { BODY_STATES, NO_BODY, NOT_STORED, RECORDED_BEFORE, entryText } from "./entry-record.ts";
import type { BodyRecord, EntryRecord, RecordedBefore } from "./entry-record.ts";
import { effectOf } from "../read/rule-effects.ts";
import type { BodyCapture } from "#exchange/body.ts";
import { durationUs, flagsOf, readFields, resourceTypeOf, stateCode, ttfbUs } from "../read/entry-facts.ts";
import type { EntryStateCode } from "../read/entry-facts.ts";
import { tlsText } from "../read/stored-json.ts";

/** Encodes an exchange. Bodies are omitted while it runs and if `storesBodies` is false. */
export function encodeRecord(
  seq: number,
  before: RecordedBefore,
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
    null,
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
  readonly client: ExchangeView["client"];
  readonly text: string;
}

/** Encoded TLS facts by upstream connection: its exchanges, and mostly their clients, share them. */
const textsByUpstream = new WeakMap<UpstreamTlsFacts, ConnectionTls>();

/** TLS facts of both connections as stored; empty without TLS. */
function connectionTls({ client, upstreamTls: upstream }: ExchangeView): string {
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

function isSameTls(a: ExchangeView["client"], b: ExchangeView["client"]): boolean {
  if (a.sni !== b.sni) return false;
  return a.tls === b.tls || (a.tls?.version === b.tls?.version && a.tls?.cipher === b.tls?.cipher);
}

function clientPart({ tls, sni }: ExchangeView["client"]): Pick<TlsInfo, "client_version" | "client_cipher" | "sni"> {
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
