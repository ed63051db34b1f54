import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { ConnectionOptions, TlsOptions } from "node:tls";
import { CertificateAuthority, type LeafNames } from "@headworks/tls-authority";
import {
  type Closable,
  closeServer,
  listenAnywhere,
  type LoopbackHost,
  type Octets,
  rawClient,
  type RawConnection,
  type RawResponse,
  readResponse,
  secure,
  toBytes,
  trackSockets,
  urlHost,
} from "./raw-sockets.ts";

/** How an origin speaks TLS; the defaults are a CA of its own and the names localhost, 127.0.0.1 and ::1. */
export interface OriginTls {
  authority?: CertificateAuthority;
  names?: LeafNames;
  /** More of node's options, such as `minVersion` or `requestCert`. */
  options?: TlsOptions;
}

/** For {@link startOrigin}. */
export interface OriginOptions {
  handler?: RequestListener;
  tls?: true | OriginTls;
  host?: LoopbackHost;
  /** node:http's own options, such as `keepAliveTimeout`. */
  http?: ServerOptions;
}

/** The head of a request an origin has seen. */
export interface SeenRequest {
  method: string;
  url: string;
  httpVersion: string;
  /** Names and values in turn, as they came. */
  rawHeaders: readonly string[];
}

/** A running origin. */
export interface Origin extends Closable {
  readonly port: number;
  readonly host: LoopbackHost;
  /** Scheme, host and port, without a trailing slash. */
  readonly url: string;
  /** The CA to trust; undefined without TLS. */
  readonly caPem: string | undefined;
  /** Heads of all requests so far, oldest first. */
  readonly requests: readonly SeenRequest[];
  /** TCP connections accepted so far. */
  readonly connectionCount: number;
}

/** Starts an HTTP/1.1 server on node's own implementation; the default handler is {@link echo}. */
export async function startOrigin(options: OriginOptions = {}): Promise<Origin> {
  const handler = options.handler ?? echo;
  const requests: SeenRequest[] = [];
  let connectionCount = 0;
  const listener: RequestListener = (request, response) => {
    const { method = "", url = "", httpVersion, rawHeaders } = request;
    requests.push({ method, url, httpVersion, rawHeaders });
    handler(request, response);
  };
  const tls = options.tls === true ? {} : options.tls;
  const authority = tls === undefined ? undefined : (tls.authority ?? CertificateAuthority.create());
  const server =
    authority === undefined
      ? createServer({ ...options.http }, listener)
      : createSecureServer({ ...options.http, ...credentials(authority, tls?.names), ...tls?.options }, listener);
  const sockets = trackSockets(server);
  server.on("connection", () => {
    connectionCount += 1;
  });
  const host = options.host ?? "127.0.0.1";
  const port = await listenAnywhere(server, host);
  const close = async (): Promise<void> => await closeServer(server, sockets);
  return {
    port,
    host,
    url: `${authority === undefined ? "http" : "https"}://${urlHost(host)}:${port}`,
    caPem: authority?.certificatePem,
    requests,
    get connectionCount() {
      return connectionCount;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** `cert` and `key` for node's TLS servers. */
export function credentials(
  authority: CertificateAuthority,
  names: LeafNames = { dns: ["localhost"], ip: ["127.0.0.1", "::1"] },
): { cert: string; key: string } {
  const leaf = authority.issueLeaf(names);
  return { cert: leaf.chainPem, key: leaf.keyPem };
}

/** Answers 200 with JSON: `method`, `url`, `headers` (pairs, as received) and `body` (base64). */
export function echo(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const { method, url, rawHeaders } = request;
    const headers: [string, string][] = [];
    for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
      headers.push([rawHeaders[index] ?? "", rawHeaders[index + 1] ?? ""]);
    }
    const body = Buffer.concat(chunks).toString("base64");
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ method, url, headers, body }));
  });
}

/** For {@link proxyClient}. */
export interface ProxyClientOptions {
  /** PEM of the CA that the proxy intercepts with (or the origin's own); several are allowed. */
  ca?: string | string[];
  host?: string;
  /** Fields sent to the proxy itself with every absolute-form request and CONNECT. */
  proxyHeaders?: readonly (readonly [name: string, value: string])[];
  timeoutMs?: number;
}

/** A request to send through the proxy. `Host` and, with a body, `Content-Length` are added when they are missing. */
export interface ProxiedRequest {
  method?: string;
  /** `http:` is sent in absolute form, `https:` in a TLS session inside a CONNECT tunnel. */
  url: string;
  headers?: readonly (readonly [name: string, value: string])[];
  body?: Octets;
}

/** A client that talks through a proxy, close enough to the bytes to send what no HTTP library would. */
export interface ProxyClient {
  /** One request on a connection of its own, which is closed afterwards. */
  fetch(request: string | ProxiedRequest): Promise<RawResponse>;
  /** A plain connection to the proxy, for bytes of the test's own. */
  connect(): Promise<RawConnection>;
  /** Sends CONNECT; on a 2xx the connection is the tunnel. `authority` goes out as it is. */
  tunnel(authority: string): Promise<{ response: RawResponse; connection: RawConnection }>;
  /** A TLS session inside a tunnel; rejects unless CONNECT gets a 2xx. */
  secureTunnel(host: string, port: number, options?: ConnectionOptions): Promise<RawConnection>;
}

/** A client for the proxy at `port` of this machine. */
export function proxyClient(port: number, options: ProxyClientOptions = {}): ProxyClient {
  const { timeoutMs, proxyHeaders = [] } = options;
  const connect = async (): Promise<RawConnection> =>
    await rawClient(port, {
      ...(options.host === undefined ? {} : { host: options.host }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
  const tunnel: ProxyClient["tunnel"] = async (authority) => {
    const connection = await connect();
    await connection.write(head(`CONNECT ${authority} HTTP/1.1`, [["Host", authority], ...proxyHeaders]));
    return { response: await readResponse(connection, "CONNECT", timeoutMs), connection };
  };
  const secureTunnel: ProxyClient["secureTunnel"] = async (host, targetPort, tlsOptions = {}) => {
    const bare = host.startsWith("[") ? host.slice(1, -1) : host;
    const authority = `${bare.includes(":") ? `[${bare}]` : bare}:${targetPort}`;
    const { response, connection } = await tunnel(authority);
    if (response.status < 200 || response.status > 299) {
      connection.destroy();
      throw new Error(`CONNECT ${authority} was answered ${response.status} ${response.reason}`);
    }
    const isName = !/^[0-9.]+$/.test(bare) && !bare.includes(":");
    const base: ConnectionOptions = {
      host: bare,
      ...(options.ca === undefined ? {} : { ca: options.ca }),
      ...(isName ? { servername: bare } : {}),
    };
    return await secure(connection.detach(), { ...base, ...tlsOptions }, timeoutMs);
  };
  const fetch: ProxyClient["fetch"] = async (request) => {
    const wanted = typeof request === "string" ? { url: request } : request;
    const url = new URL(wanted.url);
    const isSecure = url.protocol === "https:";
    await using connection = isSecure ? await secureTunnel(url.hostname, Number(url.port || 443)) : await connect();
    await connection.write(requestBytes(wanted, url, isSecure ? [] : proxyHeaders));
    return await readResponse(connection, wanted.method, timeoutMs);
  };
  return { fetch, connect, tunnel, secureTunnel };
}

function requestBytes(request: ProxiedRequest, url: URL, proxyHeaders: readonly (readonly [string, string])[]): Buffer {
  const target =
    url.protocol === "https:" ? url.pathname + url.search : url.href.slice(0, url.href.length - url.hash.length);
  const headers = [...(request.headers ?? []), ...proxyHeaders];
  const has = (name: string): boolean => headers.some(([each]) => each.toLowerCase() === name);
  if (!has("host")) headers.unshift(["Host", url.host]);
  const body = toBytes(request.body ?? "");
  if (request.body !== undefined && !has("content-length") && !has("transfer-encoding")) {
    headers.push(["Content-Length", String(body.length)]);
  }
  return Buffer.concat([head(`${request.method ?? "GET"} ${target} HTTP/1.1`, headers), body]);
}

const head = (startLine: string, headers: readonly (readonly [string, string])[]): Buffer =>
  Buffer.from(`${[startLine, ...headers.map(([name, value]) => `${name}: ${value}`)].join("\r\n")}\r\n\r\n`, "latin1");
