import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import type { Upstream } from "@headworks/gateway-contract";
import { canonicalHost, hostPortText, parseHostPort } from "@headworks/host-patterns";
import { readPastBrokenWrites, sharedReads, shareReadBuffer, type SharedBytes } from "@headworks/sockets";

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
interface ConnectionHandler extends AttemptHandler {
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

/** Opens an HTTP/2 connection: by prior knowledge over TCP, by ALPN over TLS; returns a cancel function. */
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

/** Host of requests to an upstream: its endpoint's, the client's, or a fixed name. */
export type UpstreamHost = "endpoint" | "preserve" | { readonly name: string };

/** Parses a validated `upstream_host`. */
export function compileUpstreamHost(text = "endpoint"): UpstreamHost {
  return text === "endpoint" || text === "preserve" ? text : { name: hostText(text) };
}

/** Host with an optional port in canonical form: lower case, A-labels, no final dot (RFC 9110 section 7.2). */
function hostText(text: string): string {
  const parsed = parseHostPort(text);
  if ("issue" in parsed) return text;
  const host = canonicalHost(parsed.host);
  return hostPortText(host, parsed.port ?? NO_PORT, parsed.port === undefined ? NO_PORT : undefined);
}

const NO_PORT = 0;
const isSecure = ({ protocol }: Upstream): boolean => protocol === "https" || protocol === "http2";

interface EndpointAddress {
  readonly address: string;
  readonly port: number;
}

/** The name of an endpoint, else its address. Discovered endpoints are named by `dns_discovery`. */
function endpointName({ endpoints = [], dns_discovery: discovery }: Upstream, address: string): string {
  const bare = address.startsWith("[") && address.endsWith("]") ? address.slice(1, -1) : address;
  const isFound =
    discovery !== undefined && isIP(bare) !== 0 && !endpoints.some((listed) => listed.address === address);
  return canonicalHost(isFound ? discovery.hostname : bare);
}

/** Host of requests with the endpoint's own name or address, without the scheme's default port. */
export function endpointHost(document: Upstream, { address, port }: EndpointAddress): string {
  return hostPortText(endpointName(document, address), port, isSecure(document) ? 443 : 80);
}

/** Host of probes: the configured one, else that of requests, else the endpoint's. */
export function probeHost(document: Upstream, endpoint: EndpointAddress): string {
  const { active_health: health, upstream_host: host } = document;
  if (health?.host !== undefined) return hostText(health.host);
  const rule = compileUpstreamHost(host);
  return typeof rule === "string" ? endpointHost(document, endpoint) : rule.name;
}

/**
 * The SNI name (RFC 6066 section 3: no address, no final dot), which the certificate must match: `tls.server_name`,
 * else a name in `upstream_host`, else the endpoint's own. Undefined for an address, which the certificate must then
 * match. Equal for all clients, since they share connections.
 */
export function tlsName(document: Upstream, address: string): string | undefined {
  const rule = compileUpstreamHost(document.upstream_host);
  const fixed = typeof rule === "string" ? undefined : nameOf(rule.name);
  const name = document.tls?.server_name ?? fixed ?? endpointName(document, address);
  const canonical = canonicalHost(name);
  return isIP(canonical) === 0 ? canonical : undefined;
}

function nameOf(host: string): string | undefined {
  const parsed = parseHostPort(host);
  return "issue" in parsed || isIP(parsed.host) !== 0 ? undefined : parsed.host;
}

/** Connection options of endpoints. TLS files are read once per generation, not per endpoint. */
export class EndpointConnections {
  readonly #described = new Map<Upstream, string>();
  readonly #contexts = new Map<string, { readonly made: string; readonly context: SecureContext | undefined }>();

  /** A generation was published: files may have changed. */
  forget(): void {
    this.#described.clear();
    this.#contexts.clear();
  }

  /** Throws the error of the system or of OpenSSL if files cannot be used: there is no fallback to other trust. */
  optionsOf(
    document: Upstream,
    endpoint: { readonly address: string; readonly port: number },
  ): EndpointConnectionOptions {
    const isSecure = document.protocol === "https" || document.protocol === "http2";
    return {
      address: endpoint.address,
      port: endpoint.port,
      tls: isSecure ? { context: this.#context(document), serverName: tlsName(document, endpoint.address) } : undefined,
      connectMs: document.timeouts?.connect_ms ?? 5000,
      happyEyeballsMs: document.timeouts?.happy_eyeballs_ms ?? 250,
    };
  }

  /** All inputs of connections, as text. */
  describe(document: Upstream): string {
    let described = this.#described.get(document);
    if (described === undefined) this.#described.set(document, (described = describe(document)));
    return described;
  }

  /** Undefined for the public roots without a client certificate. */
  #context(document: Upstream): SecureContext | undefined {
    const made = this.describe(document);
    const known = this.#contexts.get(document.name);
    if (known?.made === made) return known.context;
    const context = secureContext(document);
    this.#contexts.set(document.name, { made, context });
    return context;
  }
}

function secureContext({ tls, trusted_ca_file: caFile }: Upstream): SecureContext | undefined {
  const ca = contentOf(tls?.trusted_ca_file ?? caFile);
  const cert = contentOf(tls?.client_cert_file);
  const key = contentOf(tls?.client_key_file);
  if (ca === undefined && cert === undefined) return undefined;
  // A context silently accepts a bundle without any certificate, and then trusts nothing.
  if (ca !== undefined) new X509Certificate(ca);
  return createSecureContext({
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
  });
}

function contentOf(path: string | undefined): Buffer | undefined {
  return path === undefined ? undefined : readFileSync(path);
}

function describe(document: Upstream): string {
  const { protocol, tls, trusted_ca_file: caFile, connection_cap: cap, max_pending: maxPending, timeouts } = document;
  const { upstream_host: host, dns_discovery: discovery, endpoints } = document;
  // Listed endpoints have names of their own.
  const listed = discovery === undefined ? undefined : endpoints?.map(({ address }) => address);
  const files = [tls?.trusted_ca_file ?? caFile, tls?.client_cert_file, tls?.client_key_file].map((path) => {
    try {
      return [path, contentOf(path)?.toString("base64")];
    } catch {
      return [path, "unreadable"];
    }
  });
  const { connect_ms: connectMs, happy_eyeballs_ms: eyeballsMs } = timeouts ?? {};
  const {
    stalled_connection_cap: stalledCap,
    pending_timeout_ms: pendingMs,
    max_connection_age_ms: maxAgeMs,
  } = document;
  const bounds = [cap, stalledCap, maxPending, pendingMs, maxAgeMs, connectMs, eyeballsMs];
  return JSON.stringify([protocol, tls?.server_name, host, discovery?.hostname, listed, files, ...bounds]);
}
