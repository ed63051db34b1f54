import type { FieldLines, Framing, Limits, RawFields, UpstreamRequest } from "@headworks/http1";
import type { ByteSocket } from "@headworks/sockets";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";

/** Limits of request and response heads in any HTTP version. */
export type HeadLimits = Pick<Limits, "headBytes" | "fieldCount">;

/** A final or informational response head of any HTTP version. */
export interface ResponseHead {
  readonly version: "1.0" | "1.1" | "2";
  readonly status: number;
  readonly reason: string;
  readonly fields: RawFields;
  readonly fieldLines: FieldLines;
  readonly framing: Framing;
}

/**
 * What may be done about a missing response. `retry`: the request may be resent on a new connection. `unseen`: the
 * same, since the origin reports it as unprocessed, but the body must be resent too.
 */
export type LostOutcome = "retry" | "unseen" | "fail";

/** Receives the response of one exchange, in wire order. */
export interface ResponseHandler {
  onInformational(head: ResponseHead): void;
  onResponseHead(head: ResponseHead): void;
  onResponseData(piece: Buffer): void;
  onResponseTrailers(fields: RawFields): void;
  /** Called after a 101 once its read was processed: the handler must take over the connection now. */
  onProtocolSwitched(): void;
  /** End of one read: flush. */
  onResponseBatch(): void;
  /** The response is complete; its connection or stream is already released. */
  onResponseEnd(): void;
  /** The response will not be completed. */
  onOriginLost(outcome: LostOutcome, failure: Failure): void;
  onOriginDrain(): void;
}

export interface OriginRequest extends UpstreamRequest {
  /** Path and query, or `*`. */
  readonly path: string;
  /** The exchange's fields; the origin removes hop-by-hop fields. */
  readonly fields: Readonly<RawFields>;
  readonly fieldLines: FieldLines;
  readonly framing: Framing;
  /** Lower-cased token of a valid upgrade offer. */
  readonly upgrade: string | undefined;
  /** Value for Host; undefined keeps the existing one. */
  readonly authority: string | undefined;
}

/** The origin side of an exchange. One request at a time; no callbacks after {@link destroy}. */
export interface Origin {
  /** `address:port` of the peer. */
  readonly address: string;
  readonly tls: UpstreamTlsFacts | undefined;
  /** Whether it can report requests as unprocessed (RFC 9113, 8.7). */
  readonly reportsUnprocessed: boolean;
  /** Monotonic time of the first byte of the current response; 0 before. */
  readonly firstByteMs: number;
  /** Sends a request head and returns its bytes; `handler` gets the response. Throws Http1Error. */
  send(handler: ResponseHandler, request: OriginRequest): number;
  sendData(piece: Buffer): void;
  sendEnd(trailers: RawFields | undefined): void;
  /** Flushes buffered writes. False: stop until `onOriginDrain`. */
  flush(): boolean;
  /** Pauses reading; takes effect inside callbacks too. */
  hold(): void;
  /** Resumes reading. */
  release(): void;
  /** After a protocol switch: the socket, paused and without listeners, and bytes already read. */
  takeOver(): { readonly socket: ByteSocket; readonly bytes: Buffer | undefined };
  /** The connection's user is gone. `resetCode`: of the client's RST_STREAM (RFC 9113, 7). */
  destroy(resetCode?: number): void;
}
