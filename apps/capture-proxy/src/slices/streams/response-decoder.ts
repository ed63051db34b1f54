import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from "node:zlib";

/** Content codings that can be decoded incrementally. */
export const DECODABLE = ["gzip", "x-gzip", "deflate", "br", "zstd"] as const;
export type DecodableCoding = (typeof DECODABLE)[number];

/** Why decoding stopped: the input ended too early, is not of its coding, or looks like a decompression bomb. */
export type DecoderStop = "truncated" | "damaged" | "grows too much";

/** Thresholds above which input counts as a decompression bomb. */
const SUSPECT_BYTES = 33_554_432;
const SUSPECT_GROWTH = 250;

/**
 * Decodes one content coding of an endless stream on zlib's threads. Output is delivered in small parts as it is made,
 * so memory stays flat at any growth.
 */
export class ResponseDecoder {
  readonly #coding: DecodableCoding;
  readonly #onBytes: (bytes: Buffer) => void;
  #stream: Transform | undefined;
  #closed: Promise<void> = Promise.resolve();
  #stop: DecoderStop | undefined;
  #codedBytes = 0;
  #decodedBytes = 0;

  constructor(coding: DecodableCoding, onBytes: (bytes: Buffer) => void) {
    this.#coding = coding;
    this.#onBytes = onBytes;
  }

  /** Resolves when the piece was consumed and its output delivered. After a stop, input is discarded. */
  async write(piece: Buffer): Promise<void> {
    if (this.#stop !== undefined || piece.length === 0) return;
    this.#codedBytes += piece.length;
    const stream = (this.#stream ??= this.#open(piece[0] ?? 0));
    const consumed = Promise.withResolvers<undefined>();
    stream.write(piece, () => consumed.resolve(undefined));
    await Promise.race([consumed.promise, this.#closed]);
  }

  /** Resolves when everything was delivered. Never rejects. */
  async end(): Promise<DecoderStop | undefined> {
    this.#stream?.end();
    await this.#closed;
    return this.#stop;
  }

  #open(firstOctet: number): Transform {
    const stream = decompress(this.#coding, firstOctet);
    const closed = Promise.withResolvers<undefined>();
    this.#closed = closed.promise.then(() => undefined);
    stream.on("data", (bytes: Buffer) => this.#take(bytes, stream));
    stream.on("error", (error) => {
      this.#stop ??= isShort(error) ? "truncated" : "damaged";
    });
    stream.on("close", () => closed.resolve(undefined));
    return stream;
  }

  #take(bytes: Buffer, stream: Transform): void {
    if (this.#stop !== undefined) return;
    this.#decodedBytes += bytes.length;
    if (this.#decodedBytes > SUSPECT_BYTES && this.#decodedBytes > SUSPECT_GROWTH * this.#codedBytes) {
      this.#stop = "grows too much";
      stream.destroy();
      return;
    }
    this.#onBytes(bytes);
  }
}

function decompress(coding: DecodableCoding, firstOctet: number): Transform {
  switch (coding) {
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "deflate":
      // RFC 1950 requires zlib's header; some servers omit it.
      return (firstOctet & 0x0f) === 8 ? createInflate() : createInflateRaw();
    case "br":
      return createBrotliDecompress();
    case "zstd":
      return createZstdDecompress();
  }
}

/** Brotli reports truncated input by its message only. */
function isShort(error: Error): boolean {
  return ("code" in error && error.code === "Z_BUF_ERROR") || error.message === "unexpected end of file";
}
