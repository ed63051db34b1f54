import { once, type EventEmitter } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { defaultTimeoutMs, withTimeout } from "./timeout.ts";

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
      // Whoever waits for `closed` still learns of it.
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
      const place = this.#peek().indexOf(wanted, Math.max(0, searched - wanted.length));
      searched = this.#lengthBytes;
      return place === -1 ? undefined : this.#take(place + wanted.length);
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
