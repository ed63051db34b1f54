import { randomUUID } from "node:crypto";
import type { ReplayModifications, ReplayResult, RequestData, ResponseData } from "@headworks/capture-contract";
import { decodeContentSync } from "@headworks/http-fields/content-coding";
import { fieldValue, Http1Error, removeField } from "@headworks/http1";
import { ApiError, notFound } from "#api/api-error.ts";
import { exchangeUrl } from "#exchange/exchange.ts";
import type { OutgoingRequest, SendExchange, SendOutcome } from "#exchange/outgoing.ts";
import { type BodyFacts, bodyText, shownRequest, shownResponse } from "#exchange/shown-message.ts";
import type { SliceHost } from "#slice.ts";
import { modified, prepared } from "./prepare.ts";
import { capturedRequest, parseTarget, type ReplayRequest } from "./replay-request.ts";
import type { SavedRequestsStore } from "./saved-handlers.ts";

const DEFAULT_REDIRECTS = 10;

export interface Replayed {
  readonly request: ReplayRequest;
  readonly savedRequestId: string | null;
  readonly sourceEntryId: string | null;
}

interface ReplayOptions {
  readonly modifications: ReplayModifications;
  readonly variables: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly keepsBody: boolean;
  readonly batch?: { readonly id: string; readonly iteration: number };
}

export interface Replays {
  /** Throws 404 for an unknown id. */
  find(id: string): Promise<Replayed>;
  /** Throws 400 for a request that cannot be sent; sends nothing. */
  check(replayed: Replayed, options: Pick<ReplayOptions, "modifications" | "variables">): void;
  /** Throws 400 for a request that cannot be sent. */
  execute(replayed: Replayed, options: ReplayOptions): Promise<ReplayResult>;
}

export function createReplays(
  { store, send, clock }: Pick<SliceHost, "store" | "send" | "clock">,
  saved: SavedRequestsStore,
): Replays {
  return {
    find: async (id) => {
      const kept = saved.get(id);
      if (kept !== undefined) {
        return { request: kept.request, savedRequestId: id, sourceEntryId: kept.sourceEntryId };
      }
      const request = await capturedRequest(store, id);
      if (request === undefined) return notFound("saved request", id);
      return { request, savedRequestId: null, sourceEntryId: id };
    },
    check: ({ request }, { modifications, variables }) => {
      prepared(modified(request, modifications), { given: variables, iteration: 1, nowMs: clock.now() });
    },
    execute: async ({ request, savedRequestId, sourceEntryId }, options) => {
      const { modifications, variables, batch } = options;
      const iteration = batch?.iteration ?? 1;
      const nowMs = clock.now();
      const outgoing = prepared(modified(request, modifications), { given: variables, iteration, nowMs });
      const redirects =
        modifications.follow_redirects === true ? (modifications.max_redirects ?? DEFAULT_REDIRECTS) : 0;
      const done = await run(send, outgoing, {
        signal: options.signal,
        nowMs,
        redirects,
        keepsBody: options.keepsBody,
      });
      return resultOf(done, {
        savedRequestId,
        sourceEntryId,
        batchId: batch?.id ?? null,
        iteration: batch?.iteration ?? null,
      });
    },
  };
}

/** A body that decodes to more than this is shown encoded. */
const MAX_DECODED_BYTES = 4_194_304;

interface ReplayOf {
  readonly savedRequestId: string | null;
  readonly sourceEntryId: string | null;
  readonly batchId: string | null;
  readonly iteration: number | null;
}

function resultOf(run: Run, of: ReplayOf): ReplayResult {
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

/** Response bodies up to this size are kept for the result; entries have them whole. */
const KEPT_BODY_BYTES = 1_048_576;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** Credentials, which are only sent to the original origin (RFC 9110, 15.4). */
const PERSONAL_FIELDS = ["authorization", "cookie", "proxy-authorization"];
const CONTENT_FIELDS = [
  "content-type",
  "content-encoding",
  "content-language",
  "content-location",
  "transfer-encoding",
];

interface RunOptions {
  readonly signal: AbortSignal;
  readonly nowMs: number;
  readonly redirects: number;
  readonly keepsBody: boolean;
}

interface FollowedRedirect {
  readonly status: number;
  readonly url: string;
  readonly entryId: string | undefined;
}

interface Run {
  readonly request: OutgoingRequest;
  readonly outcome: SendOutcome;
  /** The response body as received, cut at 1 MiB; undefined unless requested. */
  readonly body: Buffer | undefined;
  readonly redirects: readonly FollowedRedirect[];
  readonly executedAtMs: number;
  readonly durationMs: number;
}

/** Sends a request and follows redirects. Throws 400 for a request that cannot be serialized. */
async function run(send: SendExchange, first: OutgoingRequest, options: RunOptions): Promise<Run> {
  const executedAtMs = options.nowMs;
  const redirects: FollowedRedirect[] = [];
  let request = first;
  let durationMs = 0;
  for (;;) {
    const body = new KeptBody(options.keepsBody);
    const outcome = await sent(send, request, options.signal, body);
    durationMs += outcome.exchange?.durationMs ?? 0;
    const next = redirects.length < options.redirects ? redirected(request, outcome) : undefined;
    if (next === undefined) {
      return {
        request,
        outcome,
        body: body.bytes,
        redirects,
        executedAtMs,
        durationMs: Math.round(durationMs * 100) / 100,
      };
    }
    redirects.push(next.from);
    request = next.to;
  }
}

async function sent(
  send: SendExchange,
  request: OutgoingRequest,
  signal: AbortSignal,
  body: KeptBody,
): Promise<SendOutcome> {
  try {
    return await send(request, { signal, onBody: body.isKept ? (piece) => body.add(piece) : undefined });
  } catch (error) {
    if (!(error instanceof Http1Error)) throw error;
    throw new ApiError(
      "VALIDATION_ERROR",
      "The request cannot be written as HTTP: method, URL or a field is not valid",
      {
        cause: error,
      },
    );
  }
}

/** The request for a redirect, as browsers make it (Fetch, HTTP-redirect fetch). */
function redirected(
  request: OutgoingRequest,
  outcome: SendOutcome,
): { readonly to: OutgoingRequest; readonly from: FollowedRedirect } | undefined {
  if (outcome.kind !== "responded" || !REDIRECTS.has(outcome.exchange.response.status)) return undefined;
  const { exchange } = outcome;
  const { status, fields: answered } = exchange.response;
  const location = fieldValue(answered, "location");
  // The URL the request was sent to, regardless of its Host field.
  const base = exchangeUrl({ ...request, version: "HTTP/1.1", trailers: undefined });
  if (location === undefined || !URL.canParse(location, base)) return undefined;
  const isGet = status === 303 ? request.method !== "HEAD" : status < 307 && request.method === "POST";
  const method = isGet ? "GET" : request.method;
  const target = parseTarget(new URL(location, base).href, method);
  if (typeof target === "string") return undefined;
  const fields = request.fields.slice();
  removeField(fields, "host");
  const isCrossOrigin =
    target.host !== request.host || target.port !== request.port || target.scheme !== request.scheme;
  for (const name of isCrossOrigin ? PERSONAL_FIELDS : []) removeField(fields, name);
  for (const name of isGet ? CONTENT_FIELDS : []) removeField(fields, name);
  const { scheme, host, port, path } = target;
  return {
    to: { scheme, host, port, path, method, fields, body: isGet ? undefined : request.body },
    from: { status, url: base, entryId: exchange.isRecorded ? exchange.id : undefined },
  };
}

class KeptBody {
  readonly isKept: boolean;
  readonly #pieces: Buffer[] = [];
  #keptBytes = 0;

  constructor(isKept: boolean) {
    this.isKept = isKept;
  }

  add(piece: Uint8Array): void {
    const room = KEPT_BODY_BYTES - this.#keptBytes;
    if (room <= 0) return;
    const kept = Buffer.from(piece.subarray(0, room));
    this.#pieces.push(kept);
    this.#keptBytes += kept.length;
  }

  get bytes(): Buffer | undefined {
    return this.isKept ? Buffer.concat(this.#pieces) : undefined;
  }
}
