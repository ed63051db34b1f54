import type { Socket } from "node:net";
import type { Framing, RawFields, ResponseHead } from "@headworks/http1";

/** Why an attempt failed. */
export type UpstreamFailure =
  /** No connection within `connect_ms`. */
  | "connect-timeout"
  /** Refused, unreachable, no such name, bad certificate. */
  | "connect"
  /** No head within `read_ms`. */
  | "response-timeout"
  /** The connection broke before the head was complete. */
  | "reset"
  /** The endpoint says that it did not look at the request (RFC 9113, 8.7), so that any may be sent again. */
  | "refused"
  /** The answer is not HTTP. */
  | "protocol"
  /** More wait for a connection than `max_pending` allows, or longer than `pending_timeout_ms`. */
  | "saturated"
  /** Files that connections need cannot be used; says nothing about the endpoint. */
  | "misconfigured";

/** Receives one answer. Calls come in the order of its bytes, never from inside a call to the exchange. */
export interface ResponseHandler {
  onInformational(head: ResponseHead): void;
  onResponseHead(head: ResponseHead): void;
  onResponseData(piece: Buffer): void;
  onResponseTrailers(fields: RawFields): void;
  /** One read is worked off: flush what it caused. */
  onResponseBatch(): void;
  /** The answer is complete; the exchange must not be touched any more. */
  onResponseEnd(): void;
  /**
   * No complete answer will come. `stale`: the connection had been used before and closed before a byte of an answer
   * came, so that trying once more elsewhere is no second attempt.
   */
  onUpstreamLost(failure: UpstreamFailure, stale: boolean, detail: string): void;
  /** The connection is gone: others waited for it, and the client kept it waiting more than any other did. */
  onEvicted(): void;
  /** The upstream takes more of the request. */
  onUpstreamDrain(): void;
  /** The head was a 101: call `takeOver` now. */
  onSwitched(): void;
}

/** One request on its way to an endpoint, whatever the protocol. */
export interface UpstreamExchange {
  /** Must be called once, first. `fields` come without Host and framing. */
  send(request: {
    readonly method: string;
    readonly target: string;
    /** What Host says; undefined: the endpoint's own name. */
    readonly host?: string | undefined;
    readonly fields: RawFields;
    readonly framing: Framing;
    readonly upgrade: string | undefined;
    readonly handler: ResponseHandler;
  }): void;
  sendData(piece: Buffer): void;
  sendEnd(trailers: RawFields | undefined): void;
  /** False: stop producing until `onUpstreamDrain`. */
  flush(): boolean;
  /** Stops and continues the answer. */
  hold(): void;
  release(): void;
  /** Nobody wants the answer any more. */
  abandon(): void;
  /** After a 101: the connection, whose bytes come by `receive` and are copies. */
  takeOver(): {
    readonly socket: Socket;
    readonly bytes: Buffer | undefined;
    readonly receive: (receiver: (piece: Buffer) => void) => void;
  };
}

/** Someone who waits for a way to an endpoint. */
export interface ExchangeWaiter {
  onExchange(exchange: UpstreamExchange): void;
  onUnavailable(failure: UpstreamFailure, detail: string): void;
}

/** A waiter in the queue of a pool. */
export interface QueuedWaiter {
  readonly waiter: ExchangeWaiter;
  readonly sinceMs: number;
}

/**
 * Ends a wait for a way. True where the endpoint kept it waiting, with a connection that does not come about; false where
 * others had all the connections that there may be, which says nothing about the endpoint.
 */
export type CancelWait = () => boolean;

/** Ways to one endpoint. */
export interface EndpointPool {
  /** Answers at once where it can; gives a way to cancel the wait otherwise. */
  acquire(waiter: ExchangeWaiter): CancelWait | undefined;
  /** Idle connections close now, busy ones with their answer. */
  retire(): void;
  readonly openConnections: number;
}
