import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { ownText } from "@headworks/http1";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { Forwarding } from "./proxy-route.ts";

/** A host to connect to, and the name to verify. */
export interface Destination {
  /** Name or address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** Name for SNI and certificate verification; undefined: `host`. */
  readonly serverName: string | undefined;
  /** The connection carries a tunnel or an upgraded protocol, which a forwarding proxy cannot do. */
  readonly tunnel?: boolean;
  /** Via fields of the client's CONNECT, passed on to upstream proxies. */
  readonly via?: readonly string[] | undefined;
}

/** Whether a connection to `a` can serve requests for `b`. */
export function isSameDestination(a: Destination, b: Destination): boolean {
  return (
    a.host === b.host &&
    a.port === b.port &&
    a.secure === b.secure &&
    a.serverName === b.serverName &&
    (a.tunnel ?? false) === (b.tunnel ?? false)
  );
}

/** A copy whose strings do not pin the head they were parsed from. */
export function ownDestination({ host, port, secure, serverName, tunnel = false }: Destination): Destination {
  return {
    host: ownText(host),
    port,
    secure,
    serverName: serverName === undefined ? undefined : ownText(serverName),
    tunnel,
  };
}

/** ALPN protocols offered to origins (RFC 7301). */
export type ApplicationProtocol = "h2" | "http/1.1";

/** For connections that must use HTTP/1.1, such as those of upgrades. */
export const ONLY_HTTP1: readonly ApplicationProtocol[] = ["http/1.1"];
/** In order of preference. */
export const ALL_PROTOCOLS: readonly ApplicationProtocol[] = ["h2", "http/1.1"];

export interface Dialled {
  readonly socket: Socket | TLSSocket;
  /** The negotiated protocol; `http/1.1` without TLS or ALPN. */
  readonly protocol: ApplicationProtocol;
  /** No proxy is in between. */
  readonly isDirect: boolean;
  /** `address:port` of the peer: the origin or the upstream proxy. */
  readonly address: string;
  /** TLS with the origin. */
  readonly tls: UpstreamTlsFacts | undefined;
  /** Set if the peer is a forwarding proxy. */
  readonly forwarding: Forwarding | undefined;
}

/** Receives the outcome of one attempt, exactly once. */
export interface DialResult {
  connected(dialled: Dialled): void;
  failed(failure: Failure): void;
}
