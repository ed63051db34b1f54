import type { Framing, RawFields } from "@headworks/http1";
import type { ByteSocket } from "@headworks/sockets";
import type { ClientFacts, ResponseMessage } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { UpstreamConnections } from "./upstream-connections.ts";
import type { HttpExchange } from "./http-exchange.ts";
import type { ProxyServices } from "./proxy-services.ts";

/** What the client is connected by; the address it called, and what left, are known of network sockets only. */
export type ClientSocket = ByteSocket & {
  readonly localAddress?: string | undefined;
  readonly bytesWritten?: number | undefined;
};

/**
 * What an exchange needs of its client: a connection over HTTP/1.1 while it answers one request, or one stream of a
 * connection over HTTP/2.
 */
export interface ExchangeClient {
  readonly services: ProxyServices;
  readonly facts: ClientFacts;
  readonly origins: UpstreamConnections;
  /** Whether an answer may still be started. */
  readonly mayRespond: boolean;
  /** A byte moved: the exchange is alive. */
  touch(): void;
  /** The request body cannot be taken further for now. */
  holdReading(): void;
  releaseReading(): void;
  /** The request body is wanted now; a client that waits for 100 (Continue) gets it. */
  askForBody(): void;
  /** Passes a 1xx on to a client that can take it. */
  sendInformational(status: number, reason: string, fields: RawFields): void;
  /**
   * Writes the head of the answer; gives its size in bytes.
   * @param framing  of the body that the client is to see
   * @throws Http1Error for a field that cannot be written
   */
  sendHead(response: Readonly<ResponseMessage>, framing: Framing): number;
  sendData(piece: Buffer): void;
  /** The answer is complete. */
  sendEnd(trailers: RawFields | undefined): void;
  /** Hands over what waits to be written. False: stop until the client takes more. */
  flush(): boolean;
  /** The present answer was written to its end. */
  exchangeEnded(): void;
  /** The present exchange cannot be completed: the client must see that, not a short answer. */
  exchangeBroken(failure: Failure): void;
  /** After a 101: both sides belong to the new protocol until one of them ends. */
  switchProtocols(
    origin: { readonly socket: ByteSocket; readonly bytes: Buffer | undefined },
    exchange: HttpExchange,
  ): void;
}

/** A request head as an exchange needs it, whatever protocol brought it. */
export interface ReceivedHead {
  readonly method: string;
  /** As it was received; undefined for a head that was refused. */
  readonly target?: string | undefined;
  readonly fields: RawFields;
  readonly framing: Framing;
  /** Lower-cased, of an upgrade that was offered properly. */
  readonly upgrade: string | undefined;
  /** false: the client wants its connection closed. */
  readonly keepAlive: boolean;
}
