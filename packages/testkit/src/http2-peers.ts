import { once } from "node:events";
import {
  connect,
  constants,
  createSecureServer,
  createServer,
  type ClientHttp2Session,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { setTimeout as later } from "node:timers/promises";
import { FLAG, FRAME, frame, FrameReader, PREFACE, section, settings, u32 } from "./http2-frames.ts";
import type { RawConnection } from "./raw-connection.ts";
import { startRawServer, type RawServer } from "./raw-server.ts";

/** An HTTP/2 server for tests. */
export interface Http2Origin extends AsyncDisposable {
  readonly port: number;
  /** Sessions accepted so far, oldest first. */
  readonly sessions: readonly ServerHttp2Session[];
  /** Field sections of requests, as they came. */
  readonly requests: readonly (readonly string[])[];
}

export type StreamHandler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, section: string[]) => void;

/** Starts a server by prior knowledge, or over TLS. */
export async function startHttp2Origin(
  handler: StreamHandler,
  options: { readonly tls?: { cert: string; key: string }; readonly maxConcurrentStreams?: number } = {},
): Promise<Http2Origin> {
  const { tls, maxConcurrentStreams } = options;
  const settings = maxConcurrentStreams === undefined ? {} : { maxConcurrentStreams };
  const server = tls === undefined ? createServer({ settings }) : createSecureServer({ ...tls, settings });
  const sessions: ServerHttp2Session[] = [];
  const requests: string[][] = [];
  server.on("session", (session) => void sessions.push(session));
  server.on("sessionError", () => undefined);
  server.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, section: string[]) => {
    requests.push(section);
    stream.on("error", () => undefined);
    handler(stream, headers, section);
    // Of a request that nobody reads, node resets the stream behind its answer, at times in place of the answer's end.
    if ((flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0) stream.resume();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    sessions,
    requests,
    [Symbol.asyncDispose]: async () => {
      for (const session of sessions) session.destroy();
      const closed = once(server, "close");
      server.close();
      await closed;
    },
  };
}

/** What one stream gave. */
export interface Http2Response {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly trailers: IncomingHttpHeaders | undefined;
  readonly interim: readonly number[];
  /** How the stream was closed; 0 is no error. */
  readonly code: number;
}

/** An HTTP/2 client for tests. */
export interface Http2Client extends AsyncDisposable {
  readonly session: ClientHttp2Session;
  fetch(headers: OutgoingHttpHeaders, body?: string | Buffer): Promise<Http2Response>;
}

/** The fields of a stream that asks for a WebSocket (RFC 8441, section 5). */
export function websocketFields(scheme: "http" | "https", authority: string, path: string): Record<string, string> {
  return {
    ":method": "CONNECT",
    ":protocol": "websocket",
    ":scheme": scheme,
    ":authority": authority,
    ":path": path,
    "sec-websocket-version": "13",
  };
}

/** Connects to `http://127.0.0.1:port` by prior knowledge, or over TLS with these options. */
export async function http2Client(port: number, tls?: SecureClientSessionOptions): Promise<Http2Client> {
  const session =
    tls === undefined ? connect(`http://127.0.0.1:${port}`) : connect(`https://localhost:${port}`, { ...tls });
  await once(session, "connect");
  session.on("error", () => undefined);
  return {
    session,
    fetch: async (headers, body) => {
      const stream = session.request(headers, { endStream: body === undefined });
      const response = collect(stream);
      if (body !== undefined) stream.end(body);
      return await response;
    },
    [Symbol.asyncDispose]: async () => {
      if (session.destroyed) return;
      const closed = once(session, "close");
      session.destroy();
      await closed;
    },
  };
}

/** Everything that comes on a stream until it is closed; resets are told by `code`. */
export async function collect(stream: ReturnType<ClientHttp2Session["request"]>): Promise<Http2Response> {
  const pieces: Buffer[] = [];
  const interim: number[] = [];
  let headers: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders | undefined;
  stream.on("headers", (found) => void interim.push(Number(found[":status"])));
  stream.on("response", (found) => (headers = found));
  stream.on("trailers", (found: IncomingHttpHeaders) => (trailers = found));
  stream.on("data", (piece: Buffer) => void pieces.push(piece));
  stream.on("error", () => undefined);
  await new Promise((resolve) => stream.once("close", resolve));
  const status = Number(headers[":status"] ?? 0);
  return { status, headers, body: Buffer.concat(pieces), trailers, interim, code: stream.rstCode ?? 0 };
}

/** What a raw server says to one stream. */
export type RawResponder = (
  stream: number,
  write: (...frames: readonly Buffer[]) => void,
  connection: RawConnection,
) => void;

/** A server that answers each HEADERS with the frames of a test, and otherwise follows the RFC; `first` is sent `settingsMs` after the preface. */
export async function startRawHttp2Origin(
  response: RawResponder,
  first: Buffer = settings(),
  settingsMs = 0,
): Promise<RawServer> {
  return await startRawServer(async (connection) => {
    await connection.read(PREFACE.length);
    if (settingsMs > 0) await later(settingsMs);
    const reader = new FrameReader();
    const write = (...frames: readonly Buffer[]): void => void connection.socket.write(Buffer.concat(frames));
    write(first);
    while (!connection.ended) {
      const chunk = await connection.readSome(60_000).catch(() => undefined);
      if (chunk === undefined) break;
      for (const { type, flags, stream, payload } of reader.read(chunk)) {
        const isAck = (flags & FLAG.ack) !== 0;
        if (type === FRAME.settings && !isAck) write(frame(FRAME.settings, FLAG.ack, 0));
        if (type === FRAME.ping && !isAck) write(frame(FRAME.ping, FLAG.ack, 0, payload));
        if (type === FRAME.headers) response(stream, write, connection);
      }
    }
  });
}

/** What a server says before it resets the stream. */
export interface ResetResponse {
  readonly body: string;
  /** Announced as `content-length`, if given. */
  readonly lengthBytes?: number;
  /** Of the reset. */
  readonly code: number;
}

/** A server that begins each answer with 200, and ends it by a reset. */
export async function startResettingHttp2Origin({ body, lengthBytes, code }: ResetResponse): Promise<RawServer> {
  const length = lengthBytes === undefined ? [] : [["content-length", String(lengthBytes)] as const];
  return await startRawHttp2Origin((stream, write) => {
    write(frame(FRAME.headers, FLAG.endHeaders, stream, section([[":status", "200"], ...length])));
    for (let at = 0; at < body.length; at += 16_384) write(frame(FRAME.data, 0, stream, body.slice(at, at + 16_384)));
    write(frame(FRAME.reset, 0, stream, u32(code)));
  });
}
