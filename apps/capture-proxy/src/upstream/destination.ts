import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { ownText } from "@headworks/http1";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { Forwarding } from "./proxy-route.ts";

/** Where to connect, and how the name is proven. */
export interface Destination {
  /** Name or address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** Name for SNI and for the certificate check; undefined: `host`. */
  readonly serverName: string | undefined;
  /**
   * More than requests will be carried: the bytes of a tunnel, or another protocol after an upgrade. A proxy that
   * forwards requests cannot do that.
   */
  readonly tunnel?: boolean;
  /** The Via fields with which a client asked for the way there; proxies on that way are told them too. */
  readonly via?: readonly string[] | undefined;
}

/** Whether a connection to one may serve requests for the other. */
export function isSamePlace(a: Destination, b: Destination): boolean {
  return (
    a.host === b.host &&
    a.port === b.port &&
    a.secure === b.secure &&
    a.serverName === b.serverName &&
    (a.tunnel ?? false) === (b.tunnel ?? false)
  );
}

/** The same place in texts of its own, for who keeps it beyond the head that it was read from. */
export function ownDestination({ host, port, secure, serverName, tunnel = false }: Destination): Destination {
  return {
    host: ownText(host),
    port,
    secure,
    serverName: serverName === undefined ? undefined : ownText(serverName),
    tunnel,
  };
}

/** Protocols that an origin may be offered by ALPN (RFC 7301). */
export type ApplicationProtocol = "h2" | "http/1.1";

/** For connections that must carry HTTP/1.1, such as those of upgrades. */
export const ONLY_HTTP1: readonly ApplicationProtocol[] = ["http/1.1"];
/** What we like best first. */
export const ALL_PROTOCOLS: readonly ApplicationProtocol[] = ["h2", "http/1.1"];

export interface Dialled {
  readonly socket: Socket | TLSSocket;
  /** What the origin chose of the protocols it was offered; `http/1.1` without TLS, or when it does not choose. */
  readonly protocol: ApplicationProtocol;
  /** Nobody is on the way to the origin. */
  readonly isDirect: boolean;
  /** `address:port` of the peer: the origin, or the upstream proxy on the way to it. */
  readonly address: string;
  /** Of TLS with the origin. */
  readonly tls: UpstreamTlsFacts | undefined;
  /** The peer is a proxy that forwards requests; undefined: the origin itself is at the other end. */
  readonly forwarding: Forwarding | undefined;
}

/** Receives the outcome of one attempt, exactly once. */
export interface DialResult {
  connected(dialled: Dialled): void;
  failed(failure: Failure): void;
}
