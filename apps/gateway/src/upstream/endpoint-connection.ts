import { connect, type Socket } from "node:net";
import { connect as connectTls, TLSSocket, type SecureContext } from "node:tls";
import { shareReadBuffer, readPastBrokenWrites, sharedReads } from "@headworks/sockets";

interface EndpointTls {
  readonly context: SecureContext | undefined;
  /** Asked for, and what the certificate must have; undefined: the certificate must have the address. */
  readonly serverName: string | undefined;
}

/** How an endpoint is reached. */
export interface EndpointConnectionOptions {
  readonly address: string;
  readonly port: number;
  /** Undefined: plain TCP. */
  readonly tls: EndpointTls | undefined;
  /** Name lookup, TCP and TLS together. */
  readonly connectMs: number;
  /** So long a family of addresses has before the other one is tried beside it; 0: one after the other. */
  readonly happyEyeballsMs: number;
}

/** Exactly one of these is called, once, unless the attempt was cancelled. */
export interface AttemptHandler {
  /** The socket has no listeners. */
  connected(socket: Socket): void;
  failed(failure: "connect" | "connect-timeout", detail: string): void;
}

/** The socket is paused over TLS. */
export interface ConnectionHandler extends AttemptHandler {
  /** Bytes of the endpoint; without TLS they lie in memory that the next read overwrites. */
  received(bytes: Buffer): void;
}

/** Silence before the system asks whether the other side is still there. */
const KEEP_ALIVE_MS = 60_000;
/** What node accepts as the least time for a family of addresses. */
const MIN_EYEBALLS_MS = 10;

/** Opens a connection that speaks HTTP/1.1; gives a way to cancel that. */
export function connectEndpoint(way: EndpointConnectionOptions, handler: ConnectionHandler): () => void {
  const { tls } = way;
  return attempt(tls === undefined ? openPlain(way, handler) : openSecure(way, tls, handler), way, handler);
}

/**
 * Opens a connection that speaks HTTP/2: without TLS whoever answers is taken at its word, with TLS it has to agree; gives a
 * way to cancel that.
 */
export function connectHttp2Endpoint(way: EndpointConnectionOptions, handler: AttemptHandler): () => void {
  const socket = way.tls === undefined ? connect(targetOf(way)) : connectTls(secureTargetOf(way, way.tls, "h2"));
  return attempt(socket, way, handler, () =>
    socket instanceof TLSSocket && socket.alpnProtocol !== "h2" ? "the endpoint does not speak HTTP/2" : undefined,
  );
}

/** @param refusal  why a socket that is connected is no use */
function attempt(
  socket: Socket,
  { tls, connectMs }: EndpointConnectionOptions,
  handler: AttemptHandler,
  refusal?: () => string | undefined,
): () => void {
  readPastBrokenWrites(socket);
  const drop = (): void => {
    clearTimeout(timer);
    socket.off("error", onError);
    socket.on("error", ignoreError);
    socket.destroy();
  };
  const fail = (failure: "connect" | "connect-timeout", detail: string): void => {
    drop();
    handler.failed(failure, detail);
  };
  const onError = (error: Error): void =>
    fail("connect", error.message || ("code" in error ? String(error.code) : error.name));
  const timer = setTimeout(() => fail("connect-timeout", `no connection within ${connectMs} ms`), connectMs);
  socket.once("error", onError);
  socket.once(tls === undefined ? "connect" : "secureConnect", () => {
    const refused = refusal?.();
    if (refused !== undefined) return fail("connect", refused);
    clearTimeout(timer);
    socket.off("error", onError);
    handler.connected(socket);
  });
  return drop;
}

/** What `connect` of TCP and TLS takes, whatever is spoken afterwards. */
function targetOf({ address, port, connectMs, happyEyeballsMs }: EndpointConnectionOptions) {
  return {
    host: address,
    port,
    noDelay: true,
    // Long answers and tunnels may be silent; only the system finds out that their endpoint vanished.
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    autoSelectFamily: true,
    // One address after the other: each may take all of the time, and a refusal leads to the next at once.
    autoSelectFamilyAttemptTimeout: Math.max(MIN_EYEBALLS_MS, happyEyeballsMs === 0 ? connectMs : happyEyeballsMs),
  };
}

function openPlain(way: EndpointConnectionOptions, handler: ConnectionHandler): Socket {
  return connect({ ...targetOf(way), onread: sharedReads((bytes) => handler.received(bytes)) });
}

function secureTargetOf(way: EndpointConnectionOptions, { context, serverName }: EndpointTls, protocol: string) {
  return {
    ...targetOf(way),
    ALPNProtocols: [protocol],
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(context === undefined ? {} : { secureContext: context }),
  };
}

function openSecure(way: EndpointConnectionOptions, tls: EndpointTls, handler: ConnectionHandler): Socket {
  const socket = connectTls(secureTargetOf(way, tls, "http/1.1"));
  // Not by `onread`: what TLS has read already comes also after a pause, and a stream keeps it.
  socket.once("secureConnect", () => shareReadBuffer(socket));
  socket.on("data", (bytes: Buffer) => handler.received(bytes));
  socket.pause();
  return socket;
}

function ignoreError(): void {
  // The connection was given up already.
}
