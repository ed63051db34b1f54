import type { TrafficSnapshot } from "@headworks/capture-contract";
import { exchangeUrl, stageTimings } from "#exchange/exchange.ts";
import type { ExchangeView } from "#exchange/exchange.ts";
import {
  durationUs,
  ENTRY_STATES,
  flagsOfKinds,
  kindsOfFlags,
  readFields,
  resourceTypeOf,
  stateCode,
  ttfbUs,
} from "./entry-facts.ts";

/** The list row of a live exchange, equal to the stored one. */
export function snapshotOfExchange(seq: number, sessionId: string, exchange: ExchangeView): TrafficSnapshot {
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
    script_intercepted: false,
    device_id: null,
    client_addr: exchange.client.address ?? null,
    server_addr: exchange.serverAddress ?? null,
    failure_code: state.step === "failed" ? state.failure.code : null,
    source: exchange.source,
    has_note: false,
    timings: stageTimings(moments),
  };
}
