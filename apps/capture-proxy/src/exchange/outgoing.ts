import type { RawFields } from "@headworks/http1";
import type { RequestMessage, ResponseMessage, StageTimings } from "./exchange.ts";
import type { Failure } from "./failure.ts";

/** A request made by Weir itself. */
export interface OutgoingRequest {
  readonly scheme: "http" | "https";
  /** Lower-case name or address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly method: string;
  /** Path and query as sent, at least `/`; `*` for OPTIONS. */
  readonly path: string;
  /** In order, one character per byte. A missing Host is added; only chunked framing is respected. */
  readonly fields: RawFields;
  /** Content-coded according to the fields; undefined: no body. */
  readonly body: Uint8Array | undefined;
  /** HTTP/2 by prior knowledge without TLS; with TLS, ALPN decides. */
  readonly isHttp2Known?: boolean;
}

export interface SendOptions {
  /** Cancels the request, which then fails with `CLIENT_ABORTED`. */
  readonly signal?: AbortSignal | undefined;
  /** Receives the response body, content-coded, piece by piece; copy a piece to keep it. */
  readonly onBody?: ((piece: Uint8Array) => void) | undefined;
}

/** The outcome of a request made by Weir, as seen by its exchange. */
export interface SentExchange {
  /** Id of the captured entry, if any. */
  readonly id: string;
  readonly isRecorded: boolean;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly timings: StageTimings;
  /** As sent to the origin, after rules. */
  readonly request: Readonly<RequestMessage>;
  /** As delivered to clients, after rules; undefined for error pages. */
  readonly response: Readonly<ResponseMessage> | undefined;
  readonly responseBytes: number;
}

export type SendOutcome =
  | { readonly kind: "responded"; readonly exchange: SentExchange & { readonly response: Readonly<ResponseMessage> } }
  /** `exchange` is undefined if the request was refused before it became one. */
  | { readonly kind: "failed"; readonly failure: Failure; readonly exchange: SentExchange | undefined };

/**
 * Sends a request like a client's: through rules and capture, with the origin's certificate verified. Never rejects;
 * throws `Http1Error` for a request that cannot be written (CR in a field, a target with spaces).
 */
export type SendExchange = (request: OutgoingRequest, options?: SendOptions) => Promise<SendOutcome>;

/** Destination and route of a connection test. */
export interface ProbeRequest {
  readonly target: {
    readonly host: string;
    readonly port: number;
    readonly secure: boolean;
    /** Path and query to request after connecting; undefined: only connect. */
    readonly path: string | undefined;
  };
  readonly proxy: { readonly protocol: "http" | "https" | "socks5"; readonly host: string; readonly port: number };
  readonly credentials: { readonly username: string; readonly password: string } | undefined;
  /** Hosts reached without the proxy. */
  readonly bypass: readonly string[];
  readonly signal: AbortSignal;
}

export interface ProbeStep {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly durationMs: number;
}

export interface ProbeResult {
  readonly via: "direct" | "forward" | "tunnel" | "refused";
  /** In order, up to the first failure. */
  readonly steps: readonly ProbeStep[];
  readonly failure: Failure | undefined;
}

/** Tests a connection and reports each step; never rejects. */
export type ProbeRoute = (request: ProbeRequest) => Promise<ProbeResult>;
