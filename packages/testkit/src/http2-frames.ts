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
