import type { ByteSocket } from "@headworks/sockets";
import { FLAG, FRAME, frame, FrameReader, PREFACE, section, u32, type ReadFrame } from "@headworks/testkit";
import { within } from "./within.ts";

/** The other end, frame by frame. */
export class RawPeer {
  readonly socket: ByteSocket;
  readonly frames: ReadFrame[] = [];
  readonly ended: Promise<unknown>;
  isEnded = false;
  readonly #reader = new FrameReader();
  readonly #waiting = new Set<() => void>();
  #prefaceLeft: number;
  #pings = 0;

  constructor(socket: ByteSocket, isServer: boolean) {
    this.socket = socket;
    this.#prefaceLeft = isServer ? PREFACE.length : 0;
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.ended = promise;
    const end = (): void => {
      this.isEnded = true;
      resolve(undefined);
      for (const wake of this.#waiting) wake();
    };
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("end", end);
    socket.on("close", end);
    socket.on("error", () => undefined);
  }

  send(...frames: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(frames));
  }

  /** The first frame like this, from the beginning of the connection. */
  async frame(what: string, matches: (found: ReadFrame) => boolean): Promise<ReadFrame> {
    for (;;) {
      const found = this.frames.find(matches);
      if (found !== undefined) return found;
      if (this.isEnded) throw new Error(`${what} did not come before the end; ${this.#summary()}`);
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const wake = (): void => resolve(undefined);
      this.#waiting.add(wake);
      await within(promise, () => `${what} did not come; ${this.#summary()}`);
      this.#waiting.delete(wake);
    }
  }

  /** Everything that was said before was worked off, and the connection goes on. */
  async isOpen(): Promise<void> {
    this.#pings += 1;
    const payload = Buffer.from(`ping${String(this.#pings).padStart(4, "0")}`);
    this.send(frame(FRAME.ping, 0, 0, payload));
    await this.frame("an answer to PING", ({ type, flags, payload: found }) => {
      return type === FRAME.ping && flags === FLAG.ack && found.equals(payload);
    });
  }

  /** The code of the last GOAWAY, once the connection ended; then ends this side as well. */
  async goaway(): Promise<number> {
    await within(this.ended, () => `the connection did not end; ${this.#summary()}`);
    this.socket.end();
    const found = this.frames.findLast(({ type }) => type === FRAME.goaway);
    if (found === undefined) throw new Error(`there was no GOAWAY; ${this.#summary()}`);
    return found.payload.readUInt32BE(4);
  }

  /** The code of the RST_STREAM of this stream. */
  async reset(stream: number): Promise<number> {
    const found = await this.frame(`RST_STREAM of ${stream}`, (one) => {
      return one.type === FRAME.reset && one.stream === stream;
    });
    return found.payload.readUInt32BE(0);
  }

  /** The content of all DATA of a stream so far. */
  body(stream: number): Buffer {
    return Buffer.concat(this.#of(FRAME.data, stream).map(({ payload }) => payload));
  }

  /** Waits for so many bytes of a body. */
  async bodyOf(stream: number, bytes: number): Promise<Buffer> {
    await this.frame(`${bytes} bytes of stream ${stream}`, () => this.body(stream).length >= bytes);
    return this.body(stream);
  }

  hasEnd(stream: number): boolean {
    return this.frames.some(({ type, flags, stream: of }) => of === stream && type <= 1 && (flags & 1) === 1);
  }

  #of(type: number, stream: number): ReadFrame[] {
    return this.frames.filter((one) => one.type === type && one.stream === stream);
  }

  #read(chunk: Buffer): void {
    const skipped = Math.min(this.#prefaceLeft, chunk.length);
    this.#prefaceLeft -= skipped;
    this.frames.push(...this.#reader.read(chunk.subarray(skipped)));
    for (const wake of this.#waiting) wake();
  }

  #summary(): string {
    const last = this.frames.slice(-6).map(({ type, flags, stream, payload }) => {
      return `${type}/${flags} of ${stream} (${payload.length})`;
    });
    return `${this.frames.length} frames came, the last ${last.join(", ")}`;
  }
}

/** The fields of a section for {@link section}. */
function pairsOf(fields: readonly string[]): (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = [];
  for (let at = 0; at < fields.length; at += 2) pairs.push([fields[at] ?? "", fields[at + 1] ?? ""]);
  return pairs;
}

/** HEADERS with these fields. */
export function heads(stream: number, fields: readonly string[], isEnd = false): Buffer {
  return frame(FRAME.headers, FLAG.endHeaders | (isEnd ? FLAG.endStream : 0), stream, section(pairsOf(fields)));
}

export function data(stream: number, content: Buffer | string, isEnd = false): Buffer {
  return frame(FRAME.data, isEnd ? FLAG.endStream : 0, stream, content);
}

export function widen(stream: number, byBytes: number): Buffer {
  return frame(FRAME.windowUpdate, 0, stream, u32(byBytes));
}

export function resetOf(stream: number, code: number): Buffer {
  return frame(FRAME.reset, 0, stream, u32(code));
}

export function goaway(last: number, code = 0): Buffer {
  return frame(FRAME.goaway, 0, 0, Buffer.concat([u32(last), u32(code)]));
}

/** Bytes of which each says where it stands. */
export function pattern(bytes: number, seed = 0): Buffer {
  const made = Buffer.allocUnsafe(bytes);
  for (let at = 0; at < bytes; at += 1) made[at] = (at * 31 + (at >>> 8) + seed) & 0xff;
  return made;
}
