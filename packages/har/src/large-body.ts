/** Bytes converted at a time; a multiple of three: the concatenated base64 parts equal the base64 of the whole. */
const PART_BYTES = 196_608;

/** A large body to be written; its text is produced piece by piece. */
export class LargeBody {
  readonly #bytes: Uint8Array;
  readonly #isBase64: boolean;

  /** Without `isBase64` the bytes must be UTF-8. */
  constructor(bytes: Uint8Array, isBase64: boolean) {
    this.#bytes = bytes;
    this.#isBase64 = isBase64;
  }

  /** Same interface as `LargeText`. */
  toBytes(): Uint8Array {
    return this.#bytes;
  }

  /** The content of the JSON string, without quotation marks. */
  *jsonTexts(): Generator<string> {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    for (let at = 0; at < this.#bytes.length; at += PART_BYTES) {
      const part = this.#bytes.subarray(at, at + PART_BYTES);
      yield this.#isBase64
        ? Buffer.from(part.buffer, part.byteOffset, part.length).toString("base64")
        : JSON.stringify(decoder.decode(part, { stream: true })).slice(1, -1);
    }
  }
}
