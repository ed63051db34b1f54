import type { Socket } from "node:net";
import { reasonPhrase } from "@headworks/http-fields";
import { lengthFraming, responseHeadText } from "@headworks/http1";
import { CONNECT_ERROR, StreamSocket, type Http2Stream } from "@headworks/http2";
import { endAndLinger } from "@headworks/sockets";
import type { ByteSocket } from "@headworks/sockets";
import type { HttpVersion } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { SyntheticResponse } from "#exchange/phases.ts";
import { responseSection } from "./http2-response.ts";

/** Ends a connection at shutdown; kept by the listener or by an outer connection. */
export interface ConnectionHandle {
  /** Makes the current exchange the last one. */
  drain(): void;
  /** Ends at once; exchanges in flight fail with this reason. */
  abort(failure: Failure): void;
}

/** The head of a CONNECT request. */
export interface ConnectHead {
  /** `host:port` as written. */
  readonly target: string;
  readonly fields: readonly string[];
}

/** The client side of a tunnel requested by CONNECT. */
export interface TunnelClient {
  /** Carries the tunnel once it is accepted; paused. */
  readonly socket: ByteSocket;
  readonly version: HttpVersion;
  accept(): void;
  /** Responds with an error and closes. */
  refuse(response: SyntheticResponse): void;
}

/** Handles a CONNECT; `first` are bytes behind its head. Undefined if nothing follows. */
export type OpenTunnel = (
  client: TunnelClient,
  head: ConnectHead,
  first: Buffer | undefined,
) => ConnectionHandle | undefined;

/** An HTTP/1.1 connection after its CONNECT. */
export function connectionClient(socket: Socket): TunnelClient {
  return {
    socket,
    version: "HTTP/1.1",
    accept: () => void socket.write(responseHeadText(200, "Connection established", []), "latin1"),
    refuse: ({ status, reason = reasonPhrase(status), fields, body }) => {
      socket.write(responseHeadText(status, reason, [...fields, "Connection", "close"]), "latin1");
      endAndLinger(socket, body);
    },
  };
}

/** An HTTP/2 stream (RFC 9113, 8.5); its reset ends the tunnel. */
export function streamClient(stream: Http2Stream): TunnelClient {
  const socket = new StreamSocket(stream, { resetCode: CONNECT_ERROR, resetsAreErrors: true });
  return {
    socket,
    version: "HTTP/2",
    accept: () => stream.sendSection([":status", "200"], false),
    refuse: ({ status, reason = "", fields, body }) => {
      const response = { status, reason, version: "HTTP/2", fields, trailers: undefined } as const;
      stream.sendSection(responseSection(response, lengthFraming(body.length)), false);
      socket.end(body);
      socket.destroySoon();
      // Further input is discarded.
      socket.resume();
    },
  };
}
