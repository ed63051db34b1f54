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

/** What the listener keeps of a connection, or a connection of a tunnel on it, to end it at shutdown. */
export interface ConnectionHandle {
  /** The present exchange is the last one. */
  drain(): void;
  /** Ends at once; exchanges in flight fail with the given reason. */
  abort(failure: Failure): void;
}

/** What CONNECT said. */
export interface ConnectHead {
  /** `host:port`, as it was written. */
  readonly target: string;
  readonly fields: readonly string[];
}

/** Who asked for a tunnel by CONNECT, and how that is answered. */
export interface TunnelClient {
  /** Carries the tunnel once it was accepted; paused. */
  readonly socket: ByteSocket;
  readonly version: HttpVersion;
  /** The tunnel is open. */
  accept(): void;
  /** Answers with something else, and ends. */
  refuse(response: SyntheticResponse): void;
}

/** Begins what follows a CONNECT; `first` are bytes behind it. Undefined when nothing follows. */
export type OpenTunnel = (
  client: TunnelClient,
  head: ConnectHead,
  first: Buffer | undefined,
) => ConnectionHandle | undefined;

/** A connection over HTTP/1.1 whose CONNECT was read. */
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

/** A stream of HTTP/2 (RFC 9113, 8.5), whose reset is one of the tunnel. */
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
      // What the client says meanwhile is for nobody.
      socket.resume();
    },
  };
}
