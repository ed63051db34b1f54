import type { Framing, RawFields } from "@headworks/http1";
import type { ByteSocket } from "@headworks/sockets";
import type { ClientFacts, ResponseMessage } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { UpstreamConnections } from "./upstream-connections.ts";
import type { HttpExchange } from "./http-exchange.ts";
import type { ProxyServices } from "./proxy-services.ts";

/** A client's connection. `localAddress` and `bytesWritten` exist for network sockets only. */
export type ClientSocket = ByteSocket & {
  readonly localAddress?: string | undefined;
  readonly bytesWritten?: number | undefined;
};

/** The client side of an exchange: an HTTP/1.1 connection during one request, or one HTTP/2 stream. */
export interface ExchangeClient {
  readonly services: ProxyServices;
  readonly facts: ClientFacts;
  readonly origins: UpstreamConnections;
  /** Whether a response may still be started. */
  readonly mayRespond: boolean;
  /** Resets the idle timeout. */
  touch(): void;
  /** Stops reading the request body (backpressure). */
  holdReading(): void;
  releaseReading(): void;
  /** Sends 100 (Continue) if the client expects it. */
  askForBody(): void;
  /** Forwards a 1xx response where the client supports it. */
  sendInformational(status: number, reason: string, fields: RawFields): void;
  /**
   * Writes the response head and returns its size in bytes.
   * @param framing  of the body as the client will receive it
   * @throws Http1Error for a field that cannot be written
   */
  sendHead(response: Readonly<ResponseMessage>, framing: Framing): number;
  sendData(piece: Buffer): void;
  sendEnd(trailers: RawFields | undefined): void;
  /** Flushes buffered writes. False: stop until the client drains. */
  flush(): boolean;
  exchangeEnded(): void;
  /** Ends the connection or stream so that the client sees an incomplete response. */
  exchangeBroken(failure: Failure): void;
  /** After a 101 both sockets belong to the new protocol until either of them ends. */
  switchProtocols(
    origin: { readonly socket: ByteSocket; readonly bytes: Buffer | undefined },
    exchange: HttpExchange,
  ): void;
}

/** A request head independent of the HTTP version. */
export interface ReceivedHead {
  readonly method: string;
  /** As received; undefined for a head that was refused. */
  readonly target?: string | undefined;
  readonly fields: RawFields;
  readonly framing: Framing;
  /** Lower-cased token of a valid upgrade offer. */
  readonly upgrade: string | undefined;
  readonly keepAlive: boolean;
}
