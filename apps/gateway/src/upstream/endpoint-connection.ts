// Tested by ../../test/upstream-connections.test.ts
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, type SecureContext } from "node:tls";
import { lendReads, sharedReads } from "@headworks/sockets";

/** How an endpoint is reached. */
export interface EndpointWay {
  readonly address: string;
  readonly port: number;
  /** Undefined: plain TCP. */
  readonly tls: { readonly context: SecureContext | undefined; readonly serverName: string | undefined } | undefined;
  /** Name lookup, TCP and TLS together. */
  readonly connectMs: number;
  /** So long a family of addresses has before the other one is tried beside it; 0: one after the other. */
  readonly happyEyeballsMs: number;
}

/** Exactly one of the first two is called, once, unless the attempt was cancelled. */
export interface ConnectionHandler {
  /** The socket is paused over TLS, and has no listeners. */
  connected(socket: Socket): void;
  failed(failure: "connect" | "connect-timeout", detail: string): void;
  /** Bytes of the endpoint; without TLS they lie in memory that the next read overwrites. */
  received(bytes: Buffer): void;
}

/** Silence before the system asks whether the other side is still there. */
const KEEP_ALIVE_MS = 60_000;
/** What node accepts as the least time for a family of addresses. */
const SHORTEST_EYEBALLS_MS = 10;

/** Opens a connection that speaks HTTP/1.1; gives a way to cancel that. */
export function connectEndpoint(way: EndpointWay, handler: ConnectionHandler): () => void {
  const { tls, connectMs } = way;
  const socket = tls === undefined ? openPlain(way, handler) : openSecure(way, tls, handler);
  const drop = (): void => {
    clearTimeout(timer);
    socket.off("error", onError);
    socket.on("error", ignoreError);
    socket.destroy();
  };
  const onError = (error: Error): void => {
    drop();
    handler.failed("connect", error.message || ("code" in error ? String(error.code) : error.name));
  };
  const timer = setTimeout(() => {
    drop();
    handler.failed("connect-timeout", `no connection within ${connectMs} ms`);
  }, connectMs);
  socket.once("error", onError);
  socket.once(tls === undefined ? "connect" : "secureConnect", () => {
    clearTimeout(timer);
    socket.off("error", onError);
    handler.connected(socket);
  });
  return drop;
}

/** What `connect` of TCP and TLS takes, whatever is spoken afterwards. */
export function targetOf({ address, port, connectMs, happyEyeballsMs }: EndpointWay) {
  return {
    host: address,
    port,
    noDelay: true,
    // Long answers and tunnels may be silent; only the system finds out that their endpoint vanished.
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    autoSelectFamily: true,
    // One address after the other: each may take all of the time, and a refusal leads to the next at once.
    autoSelectFamilyAttemptTimeout: Math.max(SHORTEST_EYEBALLS_MS, happyEyeballsMs === 0 ? connectMs : happyEyeballsMs),
  };
}

function openPlain(way: EndpointWay, handler: ConnectionHandler): Socket {
  return connect({ ...targetOf(way), onread: sharedReads((bytes) => handler.received(bytes)) });
}

function openSecure(way: EndpointWay, tls: NonNullable<EndpointWay["tls"]>, handler: ConnectionHandler): Socket {
  const name = tls.serverName ?? (isIP(way.address) === 0 ? way.address : undefined);
  const socket = connectTls({
    ...targetOf(way),
    ALPNProtocols: ["http/1.1"],
    ...(name === undefined ? {} : { servername: name }),
    ...(tls.context === undefined ? {} : { secureContext: tls.context }),
  });
  // Not by `onread`: what TLS has read already comes also after a pause, and a stream keeps it.
  socket.once("secureConnect", () => lendReads(socket));
  socket.on("data", (bytes: Buffer) => handler.received(bytes));
  socket.pause();
  return socket;
}

function ignoreError(): void {
  // The connection was given up already.
}
