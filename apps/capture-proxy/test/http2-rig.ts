import { once } from "node:events";
import { Agent, createServer, request as httpRequest } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect as connectHttp2, createSecureServer, createServer as createHttp2Server } from "node:http2";
import type { ClientHttp2Session, Http2Server, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import { connect } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { TLSSocket } from "node:tls";
import { CertificateAuthority } from "@headworks/tls-authority";
import type { Interceptor } from "#exchange/phases.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine, EngineOptions } from "./engine-harness.ts";

export const originCa = CertificateAuthority.create({ commonName: "Origins" });
const leaf = originCa.issueLeaf({ dns: ["localhost"], ip: ["127.0.0.1"] });
/** For origins that prove to be localhost. */
export const originTls = { key: leaf.keyPem, cert: leaf.chainPem };

/** Node takes 128 by default. */
const MANY_FIELDS = { maxHeaderListPairs: 4000 };

/** What an origin saw of a request, whatever version of HTTP brought it. */
export interface SeenRequest {
  readonly version: "1.1" | "2";
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  /** Names and values in turn, pseudo-fields left out. */
  readonly fields: readonly string[];
  readonly body: string;
  readonly trailers: readonly string[];
}

/** What an origin is to answer with. */
export interface OriginResponse {
  readonly status?: number;
  readonly fields?: readonly (readonly [string, string])[];
  readonly body?: string | Buffer;
  readonly trailers?: readonly (readonly [string, string])[];
  /** Sent before, each with its fields. */
  readonly interim?: readonly (readonly [number, readonly (readonly [string, string])[]])[];
}

export interface VersionedOrigin extends AsyncDisposable {
  readonly port: number;
  readonly seen: SeenRequest[];
  readonly sessions: ServerHttp2Session[];
}

export type Answering = (request: SeenRequest) => OriginResponse;

function record(fields: readonly (readonly [string, string])[]): Record<string, string | string[]> {
  const gathered = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of fields) {
    const before = gathered[name];
    gathered[name] = before === undefined ? value : [before, value].flat();
  }
  return gathered;
}

function respondHttp1(incoming: IncomingMessage, response: ServerResponse, seen: SeenRequest[], how: Answering): void {
  const pieces: Buffer[] = [];
  incoming.on("data", (piece: Buffer) => void pieces.push(piece));
  incoming.on("end", () => {
    const request: SeenRequest = {
      version: "1.1",
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      authority: incoming.headers.host ?? "",
      fields: incoming.rawHeaders,
      body: Buffer.concat(pieces).toString("latin1"),
      trailers: incoming.rawTrailers,
    };
    seen.push(request);
    const { status = 200, fields = [], body = "", trailers, interim = [] } = how(request);
    for (const [code, more] of interim) {
      incoming.socket.write(
        `HTTP/1.1 ${code} Early\r\n${more.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`,
        "latin1",
      );
    }
    response.sendDate = false;
    response.writeHead(status, fields.flat());
    if (trailers) response.addTrailers([...trailers] as unknown as Record<string, string>);
    response.end(body);
  });
}

function respondHttp2(
  stream: ServerHttp2Stream,
  section: readonly string[],
  seen: SeenRequest[],
  how: Answering,
): void {
  const pieces: Buffer[] = [];
  let trailers: readonly string[] = [];
  const pseudo = (name: string): string => section[section.indexOf(name) + 1] ?? "";
  stream.on("error", () => undefined);
  stream.on("trailers", (_headers: unknown, _flags: unknown, found: string[]) => (trailers = found));
  stream.on("data", (piece: Buffer) => void pieces.push(piece));
  stream.on("end", () => {
    const fields: string[] = [];
    for (let at = 0; at < section.length; at += 2) {
      if (section[at]?.startsWith(":") === false) fields.push(section[at] ?? "", section[at + 1] ?? "");
    }
    const request: SeenRequest = {
      version: "2",
      method: pseudo(":method"),
      path: pseudo(":path"),
      authority: pseudo(":authority"),
      fields,
      body: Buffer.concat(pieces).toString("latin1"),
      trailers,
    };
    seen.push(request);
    const { status = 200, fields: own = [], body = "", trailers: after, interim = [] } = how(request);
    if (stream.destroyed) return;
    for (const [code, more] of interim) stream.additionalHeaders({ ":status": code, ...record(more) });
    stream.on("wantTrailers", () => stream.sendTrailers(record(after ?? [])));
    stream.respond([":status", String(status), ...own.flat()], {
      endStream: body.length === 0 && after === undefined,
      waitForTrailers: after !== undefined,
    });
    if (!stream.writableEnded) stream.end(body);
  });
}

/** An origin of one version of HTTP, over TLS or by prior knowledge, that answers as it is told. */
export async function startVersioned(
  version: "1.1" | "2",
  how: Answering,
  options: { readonly isPlain?: boolean } = {},
): Promise<VersionedOrigin> {
  const seen: SeenRequest[] = [];
  const sessions: ServerHttp2Session[] = [];
  const sockets = new Set<Socket>();
  const isPlain = options.isPlain === true;
  const listener = (incoming: IncomingMessage, response: ServerResponse): void =>
    respondHttp1(incoming, response, seen, how);
  const http2 = (): Http2Server => {
    const created = isPlain ? createHttp2Server(MANY_FIELDS) : createSecureServer({ ...originTls, ...MANY_FIELDS });
    created.on("session", (session: ServerHttp2Session) => void sessions.push(session));
    created.on("stream", (stream: ServerHttp2Stream, _headers: unknown, _flags: unknown, section: string[]) =>
      respondHttp2(stream, section, seen, how),
    );
    return created;
  };
  const server = version === "2" ? http2() : isPlain ? createServer(listener) : createHttpsServer(originTls, listener);
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    sessions,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** An engine that offers HTTP/2 to its clients. */
export async function http2Engine(
  options: EngineOptions & { readonly rules?: Omit<Interceptor, "name"> } = {},
): Promise<Engine & AsyncDisposable> {
  const { rules, policy, ...rest } = options;
  const engine = await startEngine({
    upstreamRoots: originCa.certificatePem,
    policy: { offersHttp2: true, ...policy },
    ...(rules === undefined ? {} : { interceptors: [{ name: "blocklist" as const, ...rules }] }),
    ...rest,
  });
  return Object.assign(engine, { [Symbol.asyncDispose]: () => engine.stop() });
}

/** CONNECT through the proxy; the socket is the tunnel. */
export async function tunnelTo(proxy: Pick<Engine, "port">, authority: string): Promise<Socket> {
  const socket = connect(proxy.port, "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  await once(socket, "data");
  return socket;
}

/** TLS inside a tunnel, with these protocols offered. */
export async function secureTunnelTo(proxy: Engine, port: number, protocols: string[]): Promise<TLSSocket> {
  const socket = await tunnelTo(proxy, `localhost:${port}`);
  const ca = proxy.ca.certificatePem;
  const secure = connectTls({ socket, servername: "localhost", ca, ALPNProtocols: protocols });
  secure.on("error", () => undefined);
  await once(secure, "secureConnect");
  return secure;
}

export interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly fields?: readonly (readonly [string, string])[];
  readonly body?: string | Buffer;
  readonly trailers?: readonly (readonly [string, string])[];
}

export interface Received {
  readonly status: number;
  readonly fields: readonly string[];
  readonly body: string;
  readonly trailers: readonly string[];
  readonly interim: readonly number[];
  /** How a stream ended; -1 for a broken connection. */
  readonly code: number;
}

/** A client of one version of HTTP. */
export interface VersionedClient extends AsyncDisposable {
  fetch(sent?: Sent): Promise<Received>;
  readonly session: ClientHttp2Session | undefined;
}

export async function clientOf(
  version: "1.1" | "2",
  proxy: Engine,
  port: number,
  options: { readonly isPlain?: boolean } = {},
): Promise<VersionedClient> {
  const isPlain = options.isPlain === true;
  const authority = `localhost:${port}`;
  const socket = isPlain
    ? await tunnelTo(proxy, authority)
    : await secureTunnelTo(proxy, port, [version === "2" ? "h2" : "http/1.1"]);
  if (version === "1.1") return http1Client(socket, authority);
  const session = connectHttp2(`${isPlain ? "http" : "https"}://${authority}`, {
    createConnection: () => socket,
    ...MANY_FIELDS,
  });
  session.on("error", () => undefined);
  return {
    session,
    fetch: (sent = {}) => fetchHttp2(session, authority, isPlain ? "http" : "https", sent),
    [Symbol.asyncDispose]: () => {
      session.destroy();
      socket.destroy();
      return Promise.resolve();
    },
  };
}

function http1Client(socket: Socket, authority: string): VersionedClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => socket;
  return {
    session: undefined,
    fetch: async ({ method = "GET", path = "/", fields = [], body, trailers } = {}) => {
      const headers = ["Host", authority, "Connection", "keep-alive", ...fields.flat()];
      if (trailers) headers.push("Transfer-Encoding", "chunked");
      else if (body !== undefined) headers.push("Content-Length", String(Buffer.byteLength(body)));
      const request = httpRequest({ agent, method, path, headers });
      const interim: number[] = [];
      request.on("information", ({ statusCode }) => void interim.push(statusCode));
      if (trailers) request.addTrailers([...trailers] as unknown as Record<string, string>);
      request.end(body);
      const [response] = (await once(request, "response")) as [IncomingMessage];
      const pieces: Buffer[] = [];
      let code = 0;
      try {
        for await (const piece of response) pieces.push(piece as Buffer);
      } catch {
        code = -1;
      }
      return {
        status: response.statusCode ?? 0,
        fields: response.rawHeaders,
        body: Buffer.concat(pieces).toString("latin1"),
        trailers: response.rawTrailers,
        interim,
        code,
      };
    },
    [Symbol.asyncDispose]: () => {
      socket.destroy();
      return Promise.resolve();
    },
  };
}

async function fetchHttp2(
  session: ClientHttp2Session,
  authority: string,
  scheme: string,
  { method = "GET", path = "/", fields = [], body, trailers }: Sent,
): Promise<Received> {
  const section = [":method", method, ":scheme", scheme, ":authority", authority, ":path", path, ...fields.flat()];
  const stream = session.request(section, { endStream: body === undefined && !trailers, waitForTrailers: !!trailers });
  const pieces: Buffer[] = [];
  const interim: number[] = [];
  let received: string[] = [];
  let after: string[] = [];
  stream.on("headers", (headers) => void interim.push(Number(headers[":status"])));
  stream.on("response", (_headers: unknown, _flags: unknown, found: string[]) => {
    received = found;
    stream.on("data", (piece: Buffer) => void pieces.push(piece));
  });
  stream.on("trailers", (_headers: unknown, _flags: unknown, found: string[]) => (after = found));
  stream.on("wantTrailers", () => stream.sendTrailers(record(trailers ?? [])));
  stream.on("error", () => undefined);
  if (body !== undefined || trailers) stream.end(body);
  await new Promise((resolve) => stream.once("close", resolve));
  const status = Number(received[received.indexOf(":status") + 1] ?? 0);
  const own = received.slice(received.indexOf(":status") + 2);
  const text = Buffer.concat(pieces).toString("latin1");
  return { status, fields: own, body: text, trailers: after, interim, code: stream.rstCode ?? 0 };
}

/** The values of one field, whatever the case of its name. */
export function valuesOf(fields: readonly string[], name: string): string[] {
  return fields.flatMap((found, at) => (at % 2 === 0 && found.toLowerCase() === name ? [fields[at + 1] ?? ""] : []));
}
