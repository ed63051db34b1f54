import { CertificateAuthority, type LeafNames } from "@headworks/tls-authority";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { TlsOptions } from "node:tls";
import { closeServer, listenAnywhere, trackSockets, urlHost, type Closable, type LoopbackHost } from "./listening.ts";

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
