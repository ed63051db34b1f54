import { connect, type Socket } from "node:net";
import { connect as connectTls, TLSSocket, type SecureContext } from "node:tls";
import { type SharedBytes, shareReadBuffer, readPastBrokenWrites, sharedReads } from "@headworks/sockets";

interface EndpointTls {
  readonly context: SecureContext | undefined;
  /** SNI name that the certificate must match; undefined: the certificate must match the address. */
  readonly serverName: string | undefined;
}

export interface EndpointConnectionOptions {
  readonly address: string;
  readonly port: number;
  /** Undefined: plain TCP. */
  readonly tls: EndpointTls | undefined;
  /** Name lookup, TCP and TLS together. */
  readonly connectMs: number;
  /** Delay before the other address family is tried in parallel; 0: one after the other. */
  readonly happyEyeballsMs: number;
}

/** Exactly one of these is called, once, unless the attempt was cancelled. */
export interface AttemptHandler {
  /** The socket has no listeners. */
  connected(socket: Socket): void;
  failed(failure: "connect" | "connect-timeout", detail: string): void;
}

/** Over TLS the socket is paused. */
export interface ConnectionHandler extends AttemptHandler {
  readonly received: (bytes: SharedBytes) => void;
}

/** Idle time before TCP keep-alive probes. */
const KEEP_ALIVE_MS = 60_000;
/** The minimum that node accepts. */
const MIN_EYEBALLS_MS = 10;

/** Opens an HTTP/1.1 connection; returns a function that cancels it. */
export function connectEndpoint(options: EndpointConnectionOptions, handler: ConnectionHandler): () => void {
  const { tls } = options;
  return attempt(tls === undefined ? openPlain(options, handler) : openSecure(options, tls, handler), options, handler);
}

/**
 * Opens an HTTP/2 connection: with prior knowledge over plain TCP, by ALPN over TLS; returns a function that cancels
 * it.
 */
export function connectHttp2Endpoint(options: EndpointConnectionOptions, handler: AttemptHandler): () => void {
  const socket =
    options.tls === undefined ? connect(targetOf(options)) : connectTls(secureTargetOf(options, options.tls, "h2"));
  return attempt(socket, options, handler, () =>
    socket instanceof TLSSocket && socket.alpnProtocol !== "h2" ? "the endpoint does not speak HTTP/2" : undefined,
  );
}

/** @param refusal  why a connected socket cannot be used */
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

/** Options for `connect` of TCP and TLS. */
function targetOf({ address, port, connectMs, happyEyeballsMs }: EndpointConnectionOptions) {
  return {
    host: address,
    port,
    noDelay: true,
    // Long responses and tunnels may be silent; only TCP keep-alive detects a vanished endpoint.
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    autoSelectFamily: true,
    // Addresses in sequence: each may take all of the time, and a refusal leads to the next at once.
    autoSelectFamilyAttemptTimeout: Math.max(MIN_EYEBALLS_MS, happyEyeballsMs === 0 ? connectMs : happyEyeballsMs),
  };
}

function openPlain(options: EndpointConnectionOptions, handler: ConnectionHandler): Socket {
  return connect({ ...targetOf(options), onread: sharedReads((bytes) => handler.received(bytes)) });
}

function secureTargetOf(options: EndpointConnectionOptions, { context, serverName }: EndpointTls, protocol: string) {
  return {
    ...targetOf(options),
    ALPNProtocols: [protocol],
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(context === undefined ? {} : { secureContext: context }),
  };
}

function openSecure(options: EndpointConnectionOptions, tls: EndpointTls, handler: ConnectionHandler): Socket {
  const socket = connectTls(secureTargetOf(options, tls, "http/1.1"));
  // Not with `onread`: bytes that TLS has read still arrive after a pause, and a stream buffers them.
  const receive = (bytes: SharedBytes): void => handler.received(bytes);
  socket.once("secureConnect", () => shareReadBuffer(socket, receive));
  socket.on("data", receive);
  socket.pause();
  return socket;
}

function ignoreError(): void {
  // The connection was given up already.
}
