import { fieldValue, Http1Error, removeField } from "@headworks/http1";
import { ApiError } from "#api/api-error.ts";
import { exchangeUrl } from "#exchange/exchange.ts";
import type { OutgoingRequest, SendExchange, SendOutcome } from "#exchange/outgoing.ts";
import { parseTarget } from "./replay-request.ts";

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

export interface RunOptions {
  readonly signal: AbortSignal;
  readonly nowMs: number;
  readonly redirects: number;
  readonly keepsBody: boolean;
}

export interface FollowedRedirect {
  readonly status: number;
  readonly url: string;
  readonly entryId: string | undefined;
}

export interface Run {
  readonly request: OutgoingRequest;
  readonly outcome: SendOutcome;
  /** The response body as received, cut at 1 MiB; undefined unless requested. */
  readonly body: Buffer | undefined;
  readonly redirects: readonly FollowedRedirect[];
  readonly executedAtMs: number;
  readonly durationMs: number;
}

/** Sends a request and follows redirects. Throws 400 for a request that cannot be serialized. */
export async function run(send: SendExchange, first: OutgoingRequest, options: RunOptions): Promise<Run> {
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
