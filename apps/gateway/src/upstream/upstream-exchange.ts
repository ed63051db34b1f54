import type { SharedBytes } from "@headworks/sockets";
import type { Socket } from "node:net";
import type { Framing, RawFields, ResponseHead } from "@headworks/http1";

export type UpstreamFailure =
  /** No connection within `connect_ms`. */
  | "connect-timeout"
  /** Refused, unreachable, unknown name, bad certificate. */
  | "connect"
  /** No response head within `read_ms`. */
  | "response-timeout"
  /** The connection broke before the head was complete. */
  | "reset"
  /** The endpoint did not process the request (RFC 9113, 8.7), so that any method may be retried. */
  | "refused"
  /** The response is not valid HTTP. */
  | "protocol"
  /** More requests are queued than `max_pending`, or one was queued longer than `pending_timeout_ms`. */
  | "saturated"
  /** Files for connections cannot be used; says nothing about the endpoint. */
  | "misconfigured";

/** Receives one response. Calls come in the order of its bytes, never from inside a call to the exchange. */
export interface ResponseHandler {
  onInformational(head: ResponseHead): void;
  onResponseHead(head: ResponseHead): void;
  readonly onResponseData: (piece: SharedBytes) => void;
  onResponseTrailers(fields: RawFields): void;
  /** One read is processed: flush the resulting output. */
  onResponseBatch(): void;
  /** The response is complete; the exchange must not be used any more. */
  onResponseEnd(): void;
  /**
   * The response will not be complete. `stale`: a reused connection was closed before the first byte of a response,
   * so that a retry does not count as a second attempt.
   */
  onUpstreamLost(failure: UpstreamFailure, stale: boolean, detail: string): void;
  /** The connection was taken for queued requests, because this client was the slowest. */
  onEvicted(): void;
  /** The upstream accepts more of the request. */
  onUpstreamDrain(): void;
  /** The head was a 101: call `takeOver` now. */
  onSwitched(): void;
}

/** One request to an endpoint, independent of the protocol. */
export interface UpstreamExchange {
  /** Must be called once, first. `fields` are without Host and framing. */
  send(request: {
    readonly method: string;
    readonly target: string;
    /** Value of Host; undefined: the endpoint's own name. */
    readonly host?: string | undefined;
    readonly fields: RawFields;
    readonly framing: Framing;
    readonly upgrade: string | undefined;
    readonly handler: ResponseHandler;
  }): void;
  readonly sendData: (piece: SharedBytes) => void;
  sendEnd(trailers: RawFields | undefined): void;
  /** False: stop producing until `onUpstreamDrain`. */
  flush(): boolean;
  /** Pauses the response until `resume`. */
  hold(): void;
  release(): void;
  /** Drops the response. */
  abandon(): void;
  /** After a 101: the connection, whose bytes come by `receive` and are copies. */
  takeOver(): {
    readonly socket: Socket;
    readonly bytes: Buffer | undefined;
    readonly receive: (receiver: (piece: Buffer) => void) => void;
  };
}

/** Waits for an endpoint connection. */
export interface ExchangeWaiter {
  onExchange(exchange: UpstreamExchange): void;
  onUnavailable(failure: UpstreamFailure, detail: string): void;
}

export interface QueuedWaiter {
  readonly waiter: ExchangeWaiter;
  readonly sinceMs: number;
}

/**
 * Cancels a queued request. True if the endpoint caused the wait, with a connection that is not established; false if
 * other requests hold all allowed connections, which says nothing about the endpoint.
 */
export type CancelWait = () => boolean;

/** The connections to one endpoint. */
export interface EndpointPool {
  /** Calls the waiter at once if possible; otherwise returns a function that cancels the wait. */
  acquire(waiter: ExchangeWaiter): CancelWait | undefined;
  /** Closes idle connections now, busy ones after their response. */
  retire(): void;
  readonly openConnections: number;
}

/** Requests that got no connection of an upstream, or lost theirs, since the upstream was first seen. */
export interface QueueCounts {
  /** Refused because `max_pending` were queued. */
  saturated: number;
  /** Queued for `pending_timeout_ms`. */
  timedOut: number;
  /** Evicted because their client was slow. */
  evicted: number;
}
