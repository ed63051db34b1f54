import { constants, inflateRawSync } from "node:zlib";

/** What became of a compressed message. */
export type Inflated =
  | { readonly kind: "message"; readonly payload: Buffer }
  /** Larger than allowed: neither it nor, with context takeover, anything after it can be read. */
  | { readonly kind: "too-large" }
  | { readonly kind: "invalid"; readonly message: string };

/** What a sender leaves out at the end of each message, RFC 7692, 7.2.1. */
const TAIL = Buffer.from([0, 0, 0xff, 0xff]);
const WINDOW_BYTES = 32_768;
/** zlib's own default makes many small messages costly. */
const CHUNK_BYTES = 4096;
const LARGE_CHUNK_BYTES = 65_536;

/**
 * Decompresses the messages of one direction, RFC 7692, section 7.2.2. Each is decompressed at once, with the end of
 * those before as its dictionary, which is what context takeover means.
 */
export class MessageInflater {
  readonly #takesOver: boolean;
  readonly #maxBytes: number;
  #window: Buffer = Buffer.alloc(0);
  #isLost = false;

  /**
   * @param takesOver  messages may refer to those before
   * @param maxBytes  of one decompressed message
   */
  constructor(takesOver: boolean, maxBytes: number) {
    this.#takesOver = takesOver;
    this.#maxBytes = maxBytes;
  }

  /** A message was not kept whole: with context takeover, those after it cannot be read. */
  lose(): void {
    this.#isLost = this.#takesOver;
  }

  /** Decompresses the joined payload of a message. */
  inflate(payload: Buffer): Inflated {
    if (this.#isLost) return { kind: "invalid", message: "An earlier message could not be decompressed" };
    try {
      const message = this.#run(Buffer.concat([payload, TAIL]));
      if (this.#takesOver) this.#remember(message);
      return { kind: "message", payload: message };
    } catch (error) {
      this.lose();
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === "ERR_BUFFER_TOO_LARGE") return { kind: "too-large" };
      return { kind: "invalid", message: `A message cannot be decompressed: ${message}` };
    }
  }

  #run(input: Buffer): Buffer {
    const parts: Buffer[] = [];
    let rest = input;
    let window = this.#window;
    let room = this.#maxBytes;
    for (;;) {
      const { buffer, engine } = inflateRawSync(rest, {
        finishFlush: constants.Z_SYNC_FLUSH,
        maxOutputLength: Math.max(1, room),
        chunkSize: rest.length > CHUNK_BYTES ? LARGE_CHUNK_BYTES : CHUNK_BYTES,
        info: true,
        ...(window.length > 0 && { dictionary: window }),
      }) as unknown as { buffer: Buffer; engine: { bytesWritten: number } };
      if (buffer.length > room) throw Object.assign(new RangeError("too large"), { code: "ERR_BUFFER_TOO_LARGE" });
      parts.push(buffer);
      room -= buffer.length;
      // A block may say that it is the last one, and others may follow all the same (RFC 7692, 7.2.3.4).
      const used = engine.bytesWritten;
      if (used === 0 || rest.length - used <= TAIL.length) break;
      rest = rest.subarray(used);
      window = lastOf(window, buffer);
    }
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  #remember(message: Buffer): void {
    this.#window = lastOf(this.#window, message);
  }
}

/** The end of two texts in a row that later messages can refer to. */
function lastOf(window: Buffer, message: Buffer): Buffer {
  if (message.length >= WINDOW_BYTES) return Buffer.from(message.subarray(message.length - WINDOW_BYTES));
  if (message.length === 0) return window;
  return Buffer.concat([window.subarray(Math.max(0, window.length + message.length - WINDOW_BYTES)), message]);
}
