const MAX_ENTRIES = 256;
/** A batch is sent when it is full or the next entry does not fit. */
export const BATCH_BYTES = 1_048_576;
/** Length of an entry's text, little-endian, before the text. */
const LENGTH_BYTES = 4;
/** Upper bound of the UTF-8 bytes per UTF-16 code unit. */
const CHARACTER_BYTES = 3;

/**
 * Encoded entries for the writer in one transferable buffer. Each entry is the length of its text, the text, and its
 * body bytes in order.
 */
export class BatchMemory {
  readonly memory: ArrayBuffer;
  readonly #bytes: Buffer;
  #entries = 0;
  #usedBytes = 0;

  constructor(memory: ArrayBuffer) {
    this.memory = memory;
    this.#bytes = Buffer.from(memory);
  }

  /** Allocates at least {@link BATCH_BYTES}, more if the entry needs it. */
  static for(text: string, bodyBytes: number): BatchMemory {
    return new BatchMemory(new ArrayBuffer(Math.max(BATCH_BYTES, maxBytes(text, bodyBytes))));
  }

  get entries(): number {
    return this.#entries;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get isFull(): boolean {
    return this.#entries >= MAX_ENTRIES;
  }

  hasRoomFor(text: string, bodyBytes: number): boolean {
    return this.#usedBytes + maxBytes(text, bodyBytes) <= this.#bytes.length;
  }

  /** Requires {@link hasRoomFor}. */
  add(text: string, bodies: readonly Uint8Array[]): void {
    const start = this.#usedBytes + LENGTH_BYTES;
    const textBytes = this.#bytes.write(text, start, "utf8");
    this.#bytes.writeUInt32LE(textBytes, this.#usedBytes);
    let at = start + textBytes;
    for (const body of bodies) {
      this.#bytes.set(body, at);
      at += body.length;
    }
    this.#usedBytes = at;
    this.#entries += 1;
  }
}

function maxBytes(text: string, bodyBytes: number): number {
  return LENGTH_BYTES + CHARACTER_BYTES * text.length + bodyBytes;
}

/** Reads entries in insertion order. Bodies are views of the buffer. */
export class BatchReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(memory: ArrayBuffer) {
    this.#bytes = Buffer.from(memory);
  }

  /** Starts the next entry. Read its bodies before the next call. */
  text(): string {
    const start = this.#at + LENGTH_BYTES;
    this.#at = start + this.#bytes.readUInt32LE(this.#at);
    return this.#bytes.toString("utf8", start, this.#at);
  }

  body(sizeBytes: number): Uint8Array {
    const body = new Uint8Array(this.#bytes.buffer, this.#at, sizeBytes);
    this.#at += sizeBytes;
    return body;
  }
}
