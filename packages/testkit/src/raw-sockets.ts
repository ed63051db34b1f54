import { type EventEmitter, once } from "node:events";
import { connect as connectTcp, createServer, type Server, type Socket } from "node:net";
import {
  connect as connectTls,
  type ConnectionOptions,
  createServer as createTlsServer,
  type TlsOptions,
} from "node:tls";
import { defaultTimeoutMs, withTimeout } from "./waiting.ts";

/** Anything a test has to close; usable with `await using`. */
export interface Closable {
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** An address of this machine to listen on. */
export type LoopbackHost = "127.0.0.1" | "::1";

/** Listens on a port of the system's choice and answers it. */
export async function listenAnywhere(server: Server, host: LoopbackHost = "127.0.0.1"): Promise<number> {
  server.listen(0, host);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}

/** The open TCP sockets of a server, so that closing it does not wait for its clients. */
export function trackSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return sockets;
}

/** Stops listening, cuts what is open, and waits until the port is free. */
export async function closeServer(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  for (const socket of sockets) socket.destroy();
  await closed;
}

/** `host` as it stands in a URL. */
export const urlHost = (host: LoopbackHost): string => (host === "::1" ? "[::1]" : host);

/** Bytes to send; a string stands for its Latin-1 octets, so that `'\xff'` is one byte. */
export type Octets = string | Uint8Array;

/** The bytes of {@link Octets}. */
export const toBytes = (octets: Octets): Uint8Array =>
  typeof octets === "string" ? Buffer.from(octets, "latin1") : octets;

/**
 * One socket read and written as plain bytes. What arrives is kept until a read takes it. Every read rejects after
 * its timeout with what had arrived by then. Half-closing is left to the test.
 */
export class RawConnection {
  readonly socket: Socket;
  /** Resolves when the socket is closed for both directions, with the error that closed it, if any. */
  readonly closed: Promise<Error | undefined>;
  #chunks: Buffer[] = [];
  #lengthBytes = 0;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void)[] = [];
  readonly #detach: () => void;

  constructor(socket: Socket) {
    this.socket = socket;
    const { promise, resolve } = Promise.withResolvers<Error | undefined>();
    this.closed = promise;
    const onData = (chunk: Buffer): void => {
      this.#chunks.push(chunk);
      this.#lengthBytes += chunk.length;
      this.#notify();
    };
    const onEnd = (): void => this.#finish();
    const onError = (error: Error): void => {
      this.#error = error;
    };
    const onClose = (): void => {
      this.#finish();
      resolve(this.#error);
    };
    socket.on("data", onData).on("end", onEnd).on("error", onError).on("close", onClose);
    this.#detach = () => {
      socket.off("data", onData).off("end", onEnd).off("error", onError).off("close", onClose);
      // The promise `closed` still resolves, without an error.
      socket.once("close", () => resolve(undefined));
    };
  }

  #notify(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }

  #finish(): void {
    this.#ended = true;
    this.#notify();
  }

  #peek(): Buffer {
    const all =
      this.#chunks.length === 1 && this.#chunks[0] !== undefined ? this.#chunks[0] : Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }

  #take(lengthBytes: number): Buffer {
    const all = this.#peek();
    const rest = all.subarray(lengthBytes);
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#lengthBytes = rest.length;
    return all.subarray(0, lengthBytes);
  }

  /** Waits until `ready` answers other than undefined; `ready` is asked again whenever bytes or the end arrive. */
  async #when<T>(what: string, timeoutMs: number, ready: () => T | undefined): Promise<T> {
    const wait = async (): Promise<T> => {
      for (;;) {
        const response = ready();
        if (response !== undefined) return response;
        if (this.#ended) {
          throw new Error(`the connection ended before ${what}; ${this.#state()}`, { cause: this.#error });
        }
        const { promise, resolve } = Promise.withResolvers<undefined>();
        this.#wake.push(() => resolve(undefined));
        await promise;
      }
    };
    return await withTimeout(wait(), timeoutMs, () => `${what} did not arrive (${this.#state()})`);
  }

  #state(): string {
    const bytes = this.#peek();
    const start = JSON.stringify(bytes.subarray(0, 300).toString("latin1"));
    return `${bytes.length} unread bytes: ${start}${bytes.length > 300 ? "..." : ""}`;
  }

  /** Sends bytes; resolves when the system has taken them, rejects when the socket fails first. */
  async write(octets: Octets): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    this.socket.write(toBytes(octets), (error) => {
      if (error) reject(error);
      else resolve(undefined);
    });
    await promise;
  }

  /** Takes everything up to and including `marker`. */
  async readUntil(marker: Octets, timeoutMs = defaultTimeoutMs): Promise<Buffer> {
    const wanted = Buffer.from(toBytes(marker));
    let searched = 0;
    return await this.#when(`the marker ${JSON.stringify(wanted.toString("latin1"))}`, timeoutMs, () => {
      const index = this.#peek().indexOf(wanted, Math.max(0, searched - wanted.length));
      searched = this.#lengthBytes;
      return index === -1 ? undefined : this.#take(index + wanted.length);
    });
  }

  /** Takes exactly `lengthBytes` bytes. */
  async read(lengthBytes: number, timeoutMs = defaultTimeoutMs): Promise<Buffer> {
    return await this.#when(`byte ${lengthBytes}`, timeoutMs, () =>
      this.#lengthBytes >= lengthBytes ? this.#take(lengthBytes) : undefined,
    );
  }

  /** Takes what is there, at least one byte. */
  async readSome(timeoutMs = defaultTimeoutMs): Promise<Buffer> {
    return await this.#when("one byte", timeoutMs, () =>
      this.#lengthBytes > 0 ? this.#take(this.#lengthBytes) : undefined,
    );
  }

  /** Takes everything until the other side ends; a connection that is reset also counts as ended. */
  async collect(timeoutMs = defaultTimeoutMs): Promise<Buffer> {
    return await this.#when("the end", timeoutMs, () => (this.#ended ? this.#take(this.#lengthBytes) : undefined));
  }

  /** Bytes that have arrived and no read has taken. */
  get unreadBytes(): number {
    return this.#lengthBytes;
  }

  /** Whether the other side has ended its direction, or the socket is closed. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Half-closes: no more bytes from here, reading goes on. */
  end(): void {
    this.socket.end();
  }

  /** Closes with a TCP reset. */
  reset(): void {
    this.socket.resetAndDestroy();
  }

  /** Closes both directions at once. */
  destroy(): void {
    this.socket.destroy();
  }

  /** Gives the socket away, for TLS inside a tunnel say; unread bytes go back into it. */
  detach(): Socket {
    this.#detach();
    this.socket.pause();
    if (this.#lengthBytes > 0) this.socket.unshift(this.#take(this.#lengthBytes));
    return this.socket;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.destroy();
    await this.closed;
  }
}

/** For {@link rawClient}; `tls` makes a handshake first, with node's options (`ca`, `servername`, `ALPNProtocols`). */
export interface RawClientOptions {
  host?: string;
  tls?: ConnectionOptions;
  timeoutMs?: number;
}

/** Connects to a port of this machine (127.0.0.1 unless `host` says otherwise). */
export async function rawClient(port: number, options: RawClientOptions = {}): Promise<RawConnection> {
  const socket = connectTcp({
    port,
    host: options.host ?? "127.0.0.1",
    allowHalfOpen: true,
    noDelay: true,
  });
  return await opened(socket, options, `a connection to port ${port}`);
}

/** A TLS client over a connected socket. */
export async function secure(
  socket: Socket,
  options: ConnectionOptions,
  timeoutMs = defaultTimeoutMs,
): Promise<RawConnection> {
  const encrypted = connectTls({ ...options, socket });
  await settled(encrypted, "secureConnect", "a TLS session", timeoutMs);
  return new RawConnection(encrypted);
}

async function opened(socket: Socket, options: RawClientOptions, what: string): Promise<RawConnection> {
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  await settled(socket, "connect", what, timeoutMs);
  return options.tls === undefined ? new RawConnection(socket) : await secure(socket, options.tls, timeoutMs);
}

async function settled(
  socket: EventEmitter & { destroy(): unknown },
  event: "connect" | "secureConnect",
  what: string,
  timeoutMs: number,
): Promise<void> {
  const closedFirst = once(socket, "close").then(() => {
    throw new Error(`${what} was closed before it was ready`);
  });
  // The loser of the race below must not count as unhandled when the socket closes much later.
  closedFirst.catch(() => undefined);
  try {
    await withTimeout(Promise.race([once(socket, event), closedFirst]), timeoutMs, () => `${what} was not made`);
  } catch (error) {
    socket.on("error", () => undefined);
    socket.destroy();
    throw error;
  }
}

/** An HTTP/1 response as bytes told it. */
export interface RawResponse {
  httpVersion: string;
  status: number;
  reason: string;
  /** Pairs as received: case, order and duplicates. */
  headers: readonly (readonly [name: string, value: string])[];
  /** The first value of a field, whatever the case of its name. */
  header(name: string): string | undefined;
  /** Without transfer coding. */
  body: Buffer;
  trailers: readonly (readonly [name: string, value: string])[];
  /** Status codes of the 1xx answers that came before. */
  interim: readonly number[];
}

/**
 * Reads one response (RFC 9112 section 6.3). Written apart from the product's parser on purpose, and strict: what a
 * careful client would not accept throws. `method` tells whether there is a body; 101 and a CONNECT's 2xx end after
 * the head.
 */
export async function readResponse(
  connection: RawConnection,
  method = "GET",
  timeoutMs = defaultTimeoutMs,
): Promise<RawResponse> {
  const interim: number[] = [];
  for (;;) {
    const head = parseHead((await connection.readUntil("\r\n\r\n", timeoutMs)).toString("latin1"));
    if (head.status >= 100 && head.status < 200 && head.status !== 101) {
      interim.push(head.status);
      continue;
    }
    const { body, trailers } = await readBody(connection, head, method, timeoutMs);
    return { ...head, header: (name) => firstValue(head.headers, name), body, trailers, interim };
  }
}

interface Head {
  httpVersion: string;
  status: number;
  reason: string;
  headers: [string, string][];
}

function parseHead(text: string): Head {
  const [statusLine = "", ...lines] = text.slice(0, -4).split("\r\n");
  const match = /^HTTP\/(1\.[01]) ([0-9]{3}) ([^\r\n]*)$/.exec(statusLine);
  if (match === null) throw new Error(`not a status line: ${JSON.stringify(statusLine)}`);
  const [, httpVersion = "", status = "", reason = ""] = match;
  return { httpVersion, status: Number(status), reason, headers: lines.map(parseField) };
}

function parseField(line: string): [string, string] {
  const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*$/.exec(line);
  if (match === null) throw new Error(`not a header field: ${JSON.stringify(line)}`);
  return [match[1] ?? "", match[2] ?? ""];
}

const valuesOf = (headers: readonly (readonly [string, string])[], name: string): string[] =>
  headers.filter(([each]) => each.toLowerCase() === name.toLowerCase()).map(([, value]) => value);

const firstValue = (headers: readonly (readonly [string, string])[], name: string): string | undefined =>
  valuesOf(headers, name)[0];

async function readBody(
  connection: RawConnection,
  head: Head,
  method: string,
  timeoutMs: number,
): Promise<{ body: Buffer; trailers: [string, string][] }> {
  const none = { body: Buffer.alloc(0), trailers: [] };
  const { status, headers } = head;
  if (method === "HEAD" || status === 101 || status === 204 || status === 304) return none;
  if (method === "CONNECT" && status >= 200 && status < 300) return none;
  const codings = valuesOf(headers, "transfer-encoding");
  const lengths = valuesOf(headers, "content-length");
  if (codings.length > 0) {
    if (lengths.length > 0) throw new Error("both Transfer-Encoding and Content-Length");
    if (codings.join(", ").toLowerCase() === "chunked") return await readChunks(connection, timeoutMs);
    throw new Error(`unexpected Transfer-Encoding: ${codings.join(", ")}`);
  }
  if (lengths.length > 1) throw new Error("more than one Content-Length");
  const length = lengths[0];
  if (length === undefined) return { body: await connection.collect(timeoutMs), trailers: [] };
  if (!/^[0-9]+$/.test(length)) throw new Error(`not a Content-Length: ${length}`);
  return { body: await connection.read(Number(length), timeoutMs), trailers: [] };
}

async function readChunks(
  connection: RawConnection,
  timeoutMs: number,
): Promise<{ body: Buffer; trailers: [string, string][] }> {
  const chunks: Buffer[] = [];
  for (;;) {
    const line = (await connection.readUntil("\r\n", timeoutMs)).toString("latin1");
    const size = /^([0-9a-fA-F]+)(?:[ \t]*;[^\r\n]*)?\r\n$/.exec(line)?.[1];
    if (size === undefined) throw new Error(`not a chunk size: ${JSON.stringify(line)}`);
    const lengthBytes = Number.parseInt(size, 16);
    if (lengthBytes === 0) break;
    chunks.push(await connection.read(lengthBytes, timeoutMs));
    const end = await connection.read(2, timeoutMs);
    if (end.toString("latin1") !== "\r\n") throw new Error("a chunk is not followed by CRLF");
  }
  const trailers: [string, string][] = [];
  for (;;) {
    const line = (await connection.readUntil("\r\n", timeoutMs)).toString("latin1").slice(0, -2);
    if (line === "") return { body: Buffer.concat(chunks), trailers };
    trailers.push(parseField(line));
  }
}

/**
 * What the server does with a connection: a function (the connection is ended when it returns), or bytes that are
 * sent once a request head (up to an empty line) has come, before the connection is ended.
 */
export type RawScript = Octets | ((connection: RawConnection, index: number) => Promise<void> | void);

/** A running raw server. */
export interface RawServer extends Closable {
  readonly port: number;
  readonly host: LoopbackHost;
  /** Every connection accepted so far, oldest first. */
  readonly connections: readonly RawConnection[];
  /** Errors thrown by the script. A test that wants them to count looks here; `close` rejects with the first one. */
  readonly errors: readonly Error[];
}

/** Starts a server that speaks nothing by itself. `tls` takes node's options (`cert`, `key`, `ALPNProtocols`). */
export async function startRawServer(
  script: RawScript,
  options: { host?: LoopbackHost; tls?: TlsOptions } = {},
): Promise<RawServer> {
  const connections: RawConnection[] = [];
  const errors: Error[] = [];
  const accept = (socket: Socket): void => {
    const connection = new RawConnection(socket);
    const index = connections.push(connection) - 1;
    runScript(script, connection, index).catch((error: unknown) => {
      errors.push(error instanceof Error ? error : new Error(String(error)));
      connection.destroy();
    });
  };
  const server =
    options.tls === undefined
      ? createServer({ allowHalfOpen: true, noDelay: true }, accept)
      : createTlsServer({ ...options.tls, allowHalfOpen: true }, accept);
  const sockets = trackSockets(server);
  const host = options.host ?? "127.0.0.1";
  const port = await listenAnywhere(server, host);
  let closing = false;
  const close = async (): Promise<void> => {
    if (closing) return;
    closing = true;
    const first = errors[0];
    await closeServer(server, sockets);
    if (first !== undefined) throw first;
  };
  return { port, host, connections, errors, close, [Symbol.asyncDispose]: close };
}

async function runScript(script: RawScript, connection: RawConnection, index: number): Promise<void> {
  if (typeof script === "function") await script(connection, index);
  else {
    await connection.readUntil("\r\n\r\n");
    await connection.write(script);
  }
  connection.end();
}
