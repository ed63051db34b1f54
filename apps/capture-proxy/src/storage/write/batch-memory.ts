/** A batch is sent when it has so many entries, */
const MAX_ENTRIES = 256;
/** or when the next one does not fit into this. */
export const BATCH_BYTES = 1_048_576;
/** Before each entry stands how many bytes its text has. */
const LENGTH_BYTES = 4;
/** A character of a string takes at most so many bytes of UTF-8. */
const CHARACTER_BYTES = 3;

/**
 * Entries on their way to the writer, in memory that goes there as it is: for each the length of its text, the text, and the
 * bytes of its bodies in order.
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

  /** New memory that has room for the entry, and for more if that is small. */
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

  /** Takes an entry there is room for. */
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

/** Reads entries in the order in which they were added. Bodies stay views of the memory. */
export class BatchReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(memory: ArrayBuffer) {
    this.#bytes = Buffer.from(memory);
  }

  /** The text of the next entry; its bodies are to be taken before the next text. */
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
