import { randomUUID } from "node:crypto";
import type { ReplayResult, RequestData, ResponseData } from "@headworks/capture-contract";
import { decodeContentSync } from "@headworks/http-fields/content-coding";
import { type BodyFacts, bodyText, shownRequest, shownResponse } from "#exchange/shown-message.ts";
import type { Run } from "./run.ts";

/** A body that decodes to more than this is shown encoded. */
const MAX_DECODED_BYTES = 4_194_304;

export interface ReplayOf {
  readonly savedRequestId: string | null;
  readonly sourceEntryId: string | null;
  readonly batchId: string | null;
  readonly iteration: number | null;
}

export function resultOf(run: Run, of: ReplayOf): ReplayResult {
  const { outcome } = run;
  const { exchange } = outcome;
  const failure = outcome.kind === "failed" ? outcome.failure : undefined;
  return {
    id: randomUUID(),
    saved_request_id: of.savedRequestId,
    source_entry_id: of.sourceEntryId,
    batch_id: of.batchId,
    iteration: of.iteration,
    entry_id: exchange?.isRecorded === true ? exchange.id : null,
    request: requestOf(run),
    response: responseOf(run),
    error: failure?.message ?? null,
    error_code: failure?.code ?? null,
    redirects: run.redirects.map(({ status, url, entryId }) => ({
      status_code: status,
      url,
      entry_id: entryId ?? null,
    })),
    executed_at: new Date(run.executedAtMs).toISOString(),
    duration_ms: run.durationMs,
  };
}

function requestOf({ request, outcome, body }: Run): RequestData {
  const sentBytes = request.body?.length ?? 0;
  const facts: BodyFacts = {
    bytes: body === undefined ? undefined : request.body,
    sizeBytes: sentBytes,
    storedBytes: sentBytes,
    state: sentBytes === 0 ? "none" : "complete",
  };
  return shownRequest(outcome.exchange?.request ?? { ...request, version: "HTTP/1.1", trailers: undefined }, facts);
}

function responseOf({ outcome, body }: Run): ResponseData | null {
  if (outcome.kind !== "responded") return null;
  const { response, responseBytes, durationMs } = outcome.exchange;
  const storedBytes = Math.min(body?.length ?? responseBytes, responseBytes);
  const state = responseBytes === 0 ? "none" : storedBytes < responseBytes ? "truncated" : "complete";
  const bytes = body?.length === 0 ? undefined : body;
  return shownResponse(response, { bytes, sizeBytes: responseBytes, storedBytes, state }, durationMs);
}

/** Strips bodies before the result is stored: the entry has them. */
export function withoutBodies(result: ReplayResult): ReplayResult {
  const { request, response } = result;
  return {
    ...result,
    request: { ...request, body: null, body_encoding: null },
    response: response && { ...response, body: null, body_encoding: null },
  };
}

export function decoded(result: ReplayResult): ReplayResult {
  const { response } = result;
  const bytes = bytesOf(response?.body ?? null);
  const codings = response?.headers_list.flatMap(([name, value]) => (/^content-encoding$/iu.test(name) ? [value] : []));
  if (response === null || bytes === undefined || codings === undefined || codings.length === 0) return result;
  const { bytes: plain, stop } = decodeContentSync(bytes, codings, { maxBytes: MAX_DECODED_BYTES });
  if (stop === "limit") return result;
  return { ...result, response: { ...response, ...bodyText(plain) } };
}

function bytesOf(body: string | null): Uint8Array | undefined {
  if (body === null) return undefined;
  return body.startsWith("base64:") ? Buffer.from(body.slice(7), "base64") : Buffer.from(body, "utf8");
}
