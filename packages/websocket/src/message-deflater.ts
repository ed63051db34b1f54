import { constants, deflateRawSync } from "node:zlib";

/** Compresses the messages of one direction, RFC 7692, section 7.2.1. */
export class MessageDeflater {
  readonly #takesOver: boolean;
  readonly #windowBits: number;
  #window: Buffer = Buffer.alloc(0);

  /**
   * @param takesOver  messages refer to those before
   * @param windowBits  8 to 15, as agreed
   */
  constructor(takesOver: boolean, windowBits: number) {
    this.#takesOver = takesOver;
    this.#windowBits = windowBits;
  }

  /** The payload to be sent in frames whose first one has RSV1 set. */
  deflate(message: Buffer): Buffer {
    // zlib cannot hold a raw stream to 256 bytes; stored blocks refer to nothing.
    const isStored = this.#windowBits === 8;
    const compressed = deflateRawSync(message, {
      finishFlush: constants.Z_SYNC_FLUSH,
      windowBits: Math.max(9, this.#windowBits),
      ...(isStored && { level: 0 }),
      ...(this.#window.length > 0 && !isStored && { dictionary: this.#window }),
    });
    if (this.#takesOver) {
      this.#window = Buffer.concat([this.#window, message]).subarray(-(1 << this.#windowBits));
    }
    // The tail that every reader adds again; an empty message is a single zero (7.2.3.6).
    return message.length === 0 ? Buffer.from([0]) : compressed.subarray(0, compressed.length - 4);
  }
}
