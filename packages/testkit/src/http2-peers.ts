import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createSecureServer,
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { setTimeout as later } from "node:timers/promises";
import { type RawConnection, type RawServer, startRawServer } from "./raw-sockets.ts";

/** Types of frames (RFC 9113, 6). */
export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const FLAG = { endStream: 1, ack: 1, endHeaders: 4 } as const;

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** One frame, valid or not. */
export function frame(type: number, flags: number, stream: number, payload: Buffer | string = ""): Buffer {
  const bytes = typeof payload === "string" ? Buffer.from(payload, "latin1") : payload;
  const head = Buffer.alloc(9);
  head.writeUIntBE(bytes.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, bytes]);
}

/** A payload of one 32-bit number, as resets and window updates have it. */
export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Settings by number and value. */
export function settings(...pairs: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(6 * pairs.length);
  for (const [at, [id, value]] of pairs.entries()) {
    payload.writeUInt16BE(id, 6 * at);
    payload.writeUInt32BE(value, 6 * at + 2);
  }
  return frame(FRAME.settings, 0, 0, payload);
}

/** A field section in which every field is written out, whatever its bytes (RFC 7541, 6.2.2). */
export function section(fields: readonly (readonly [name: string, value: string])[]): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  const length: number[] = [];
  if (bytes.length < 127) length.push(bytes.length);
  else {
    length.push(127);
    let rest = bytes.length - 127;
    for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** A whole request without a body on one stream. */
export function request(stream: number, more: readonly (readonly [string, string])[] = [], flags = 5): Buffer {
  return frame(FRAME.headers, flags, stream, section([...GET, ...more]));
}

export const GET: readonly (readonly [string, string])[] = [
  [":method", "GET"],
  [":scheme", "http"],
  [":authority", "gateway.test"],
  [":path", "/"],
];

/** A frame as it was read. */
export interface ReadFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** Cuts bytes into frames, however they arrive. */
export class FrameReader {
  #held = Buffer.alloc(0);

  read(chunk: Buffer): ReadFrame[] {
    this.#held = Buffer.concat([this.#held, chunk]);
    const frames: ReadFrame[] = [];
    while (this.#held.length >= 9) {
      const end = 9 + this.#held.readUIntBE(0, 3);
      if (this.#held.length < end) break;
      frames.push({
        type: this.#held[3] ?? 0,
        flags: this.#held[4] ?? 0,
        stream: this.#held.readUInt32BE(5) & 0x7fffffff,
        payload: this.#held.subarray(9, end),
      });
      this.#held = this.#held.subarray(end);
    }
    return frames;
  }
}

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
    // Node resets the stream of an unread request after its response, at times instead of the response's end.
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

/** Content received on one stream. */
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

/** The response of a raw server on one stream. */
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

/** Frames that a server sends before it resets the stream. */
interface ResetResponse {
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
