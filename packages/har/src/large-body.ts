/** So much of a body is made text at a time; a multiple of three, so that the base64 of the parts is that of the whole. */
const PART_BYTES = 196_608;

/** A large body of an entry that is to be written: its text is made piece by piece when it is. */
export class LargeBody {
  readonly #bytes: Uint8Array;
  readonly #isBase64: boolean;

  /** Without `isBase64` the bytes have to be UTF-8. */
  constructor(bytes: Uint8Array, isBase64: boolean) {
    this.#bytes = bytes;
    this.#isBase64 = isBase64;
  }

  /** The body itself, as `LargeText` gives it. */
  toBytes(): Uint8Array {
    return this.#bytes;
  }

  /** What stands between the quotation marks of the JSON string. */
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
