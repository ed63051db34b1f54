import type { FieldLines, Framing, Limits, RawFields, UpstreamRequest } from "@headworks/http1";
import type { ByteSocket } from "@headworks/sockets";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";

/** How large the head of a request or a response may be, in either version of HTTP. */
export type HeadLimits = Pick<Limits, "headBytes" | "fieldCount">;

/** The head of an answer, final or informational, whatever protocol brought it. */
export interface ResponseHead {
  readonly version: "1.0" | "1.1" | "2";
  readonly status: number;
  readonly reason: string;
  readonly fields: RawFields;
  readonly fieldLines: FieldLines;
  readonly framing: Framing;
}

/**
 * What may be done about an answer that never came. `retry`: the request may be sent once more on a new connection.
 * `unseen`: the same, since the origin says that it did not look at the request, but its body has to be sent again.
 */
export type LostOutcome = "retry" | "unseen" | "fail";

/** The exchange that an origin serves at the moment. Calls come in the order of the answer's bytes. */
export interface ResponseHandler {
  onInformational(head: ResponseHead): void;
  onResponseHead(head: ResponseHead): void;
  onResponseData(piece: Buffer): void;
  onResponseTrailers(fields: RawFields): void;
  /** The head was a 101 and its read is worked off: the handler must take the connection over now. */
  onProtocolSwitched(): void;
  /** One read is worked off: flush what it caused. */
  onResponseBatch(): void;
  /** The answer is complete; what carried it is free or gone already. */
  onResponseEnd(): void;
  /** No answer will be completed. */
  onOriginLost(outcome: LostOutcome, failure: Failure): void;
  /** The origin takes more of the request. */
  onOriginDrain(): void;
}

/** A request as an origin is to get it. */
export interface OriginRequest extends UpstreamRequest {
  /** Path and query, or `*`. */
  readonly path: string;
  /** As the exchange has them; what concerns only the client's connection is left out by the origin. */
  readonly fields: Readonly<RawFields>;
  readonly fieldLines: FieldLines;
  readonly framing: Framing;
  /** Lower-cased, of an upgrade that was offered properly. */
  readonly upgrade: string | undefined;
  /** What Host must say; undefined to leave it as the fields have it. */
  readonly authority: string | undefined;
}

/**
 * What an exchange needs of its origin: a connection over HTTP/1.1, or one stream of a connection over HTTP/2. One
 * request at a time; nothing is heard of it after {@link destroy}.
 */
export interface Origin {
  /** `address:port` of the peer. */
  readonly address: string;
  readonly tls: UpstreamTlsFacts | undefined;
  /** Whether it can say that it did not look at a request (RFC 9113, 8.7). */
  readonly reportsUnprocessed: boolean;
  /** Monotonic moment at which the first bytes of the present answer arrived; 0 before. */
  readonly firstByteMs: number;
  /**
   * Sends the head of a request, whose answer goes to `handler`. Gives its size in bytes.
   * @throws Http1Error when a part of it would break out of its place
   */
  send(handler: ResponseHandler, request: OriginRequest): number;
  sendData(piece: Buffer): void;
  /** The request is complete. */
  sendEnd(trailers: RawFields | undefined): void;
  /** Hands over what waits to be written. False: stop until `onOriginDrain`. */
  flush(): boolean;
  /** Stops reading the answer, inside a callback too. */
  hold(): void;
  /** Reads on. */
  release(): void;
  /** After a switch of protocols: the socket, without listeners and paused, and bytes that were read already. */
  takeOver(): { readonly socket: ByteSocket; readonly bytes: Buffer | undefined };
  /**
   * Whoever used it went away; its bytes must not reach anybody else.
   * @param resetCode  what the client said by ending its stream (RFC 9113, 7)
   */
  destroy(resetCode?: number): void;
}
