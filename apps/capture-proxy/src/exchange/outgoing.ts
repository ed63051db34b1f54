import type { RawFields } from "@headworks/http1";
import type { RequestMessage, ResponseMessage, StageTimings } from "./exchange.ts";
import type { Failure } from "./failure.ts";

/** A request that Weir makes itself, instead of a client. */
export interface OutgoingRequest {
  readonly scheme: "http" | "https";
  /** Lower-case name or address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly method: string;
  /** Path and query as they are to be sent, at least `/`; `*` for OPTIONS. */
  readonly path: string;
  /**
   * In the order in which they are sent, one character for each byte. A missing Host is added; of the framing fields
   * only whether there is `Transfer-Encoding` counts, which asks for a chunked body.
   */
  readonly fields: RawFields;
  /** Content-coded as the fields say; undefined: no body. */
  readonly body: Uint8Array | undefined;
  /** The origin is known to speak HTTP/2 without TLS; with TLS it chooses itself. */
  readonly isHttp2Known?: boolean;
}

export interface SendOptions {
  /** Calls the request off; it fails with `CLIENT_ABORTED`. */
  readonly signal?: AbortSignal | undefined;
  /** Gets the answer's body piece by piece, content-coded as it comes; a piece must be copied to be kept. */
  readonly onBody?: ((piece: Uint8Array) => void) | undefined;
}

/** What became of a request that Weir made, as its exchange tells. */
export interface SentExchange {
  /** Names the captured entry, if one was captured. */
  readonly id: string;
  readonly isRecorded: boolean;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly timings: StageTimings;
  /** As it went to the origin, rules applied. */
  readonly request: Readonly<RequestMessage>;
  /** As clients get it, rules applied; the page that tells of a failure is none. */
  readonly response: Readonly<ResponseMessage> | undefined;
  readonly responseBytes: number;
}

export type SendOutcome =
  | { readonly kind: "answered"; readonly exchange: SentExchange & { readonly response: Readonly<ResponseMessage> } }
  /** `exchange` is undefined when the request was refused before it became one. */
  | { readonly kind: "failed"; readonly failure: Failure; readonly exchange: SentExchange | undefined };

/**
 * Sends a request the way a client's requests go: through rules and capture, to the origin with its certificate
 * verified. Never rejects; throws `Http1Error` for a request that cannot be written (CR in a field, a target with
 * spaces).
 */
export type SendExchange = (request: OutgoingRequest, options?: SendOptions) => Promise<SendOutcome>;
