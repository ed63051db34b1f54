import { Buffer } from "node:buffer";
import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from "node:zlib";
import { decodeContentSync } from "./decode-at-once.ts";
import {
  decodingPlan,
  defaultMaxBytes,
  hasZlibHeader,
  isSurelyPlainText,
  MIN_PLAIN_BYTES,
  stillOn,
  stopOf,
  type ContentCoding,
  type DecodedContent,
  type DecodingLimits,
  type DecodingStop,
} from "./decoding-plan.ts";

/** Decodes content piece by piece. Pieces passed to `write` must not be changed afterwards. */
export interface ContentDecoder {
  /** Resolves when the piece is consumed; its output was delivered, or will be with later pieces. */
  write(piece: Uint8Array): Promise<void>;
  /** Call it once, after the last piece. Never rejects. */
  end(): Promise<Omit<DecodedContent, "bytes">>;
}

/** Input up to this size is kept, so that a damaged body can be decoded as far as possible. */
const keptBytes = 1_048_576;

/**
 * A decoder that delivers output as soon as it is available, never more than the limit in total. After a stop further
 * input is discarded. A plain text body is delivered unchanged. Of a damaged body up to 1 MiB everything decodable is
 * delivered; of a larger one zlib withholds the last few kilobytes before the damage.
 */
export function createContentDecoder(
  contentEncoding: string | readonly string[] | undefined,
  onBytes: (bytes: Uint8Array) => void,
  limits: DecodingLimits = {},
): ContentDecoder {
  const { steps, remaining } = decodingPlan(contentEncoding);
  const maxBytes = limits.maxBytes ?? defaultMaxBytes;
  let stop: DecodingStop | undefined;
  const note = (reason: DecodingStop): void => {
    stop ??= reason;
  };
  const outlet = new Outlet(onBytes, maxBytes, note);
  let first: Stage = outlet;
  for (const coding of steps.toReversed()) first = new DecodingStage(coding, first, maxBytes, note);
  let kept: Uint8Array[] | undefined = [];
  let inputBytes = 0;
  let isPlain = false;
  return {
    async write(piece) {
      if (piece.length === 0) return;
      const wasProbed = inputBytes >= MIN_PLAIN_BYTES;
      inputBytes += piece.length;
      if (inputBytes <= keptBytes || !wasProbed) kept?.push(piece);
      if (inputBytes < MIN_PLAIN_BYTES) return;
      const input = wasProbed ? piece : Buffer.concat(kept ?? []);
      if (!wasProbed) isPlain = steps.length > 0 && isSurelyPlainText(input);
      if (inputBytes > keptBytes) kept = undefined;
      if (isPlain) await outlet.write(input);
      else if (stop === undefined) await first.write(input);
    },
    async end() {
      if (inputBytes < MIN_PLAIN_BYTES) {
        const input = Buffer.concat(kept ?? []);
        const whole = decodeContentSync(input, contentEncoding, { maxBytes });
        if (whole.stop !== "limit") {
          await outlet.write(whole.bytes);
          return { stop: stop ?? whole.stop, remaining: whole.remaining };
        }
        await first.write(input);
      }
      if (isPlain) return { stop: stop ?? "damaged", remaining: stillOn(remaining, steps) };
      await first.end();
      if ((stop === "damaged" || stop === "truncated") && kept !== undefined) {
        const whole = decodeContentSync(Buffer.concat(kept), contentEncoding, { maxBytes });
        // The delivered bytes are its beginning, unless they were decoded by chance.
        if (whole.remaining.length === 0 || outlet.sentBytes === 0) {
          await outlet.write(whole.bytes.subarray(outlet.sentBytes));
          return { stop: whole.stop, remaining: whole.remaining };
        }
      }
      return { stop: stop ?? (remaining.length > 0 ? "unsupported" : undefined), remaining };
    },
  };
}

/**
 * As `decodeContentSync`, but off the main thread, and with the output before the limit. Damaged bodies are treated
 * as in {@link createContentDecoder}.
 */
export async function decodeContent(
  body: Uint8Array,
  contentEncoding: string | readonly string[] | undefined,
  limits: DecodingLimits = {},
): Promise<DecodedContent> {
  const pieces: Uint8Array[] = [];
  const decoder = createContentDecoder(contentEncoding, (bytes) => pieces.push(bytes), limits);
  await decoder.write(body);
  const outcome = await decoder.end();
  return { bytes: pieces.length === 1 ? (pieces[0] ?? body) : Buffer.concat(pieces), ...outcome };
}

interface Stage {
  write(bytes: Uint8Array): Promise<void>;
  end(): Promise<void>;
}

/** Counts the output. */
class Outlet implements Stage {
  sentBytes = 0;
  readonly #onBytes: (bytes: Uint8Array) => void;
  readonly #note: (reason: DecodingStop) => void;
  #leftBytes: number;

  constructor(onBytes: (bytes: Uint8Array) => void, maxBytes: number, note: (reason: DecodingStop) => void) {
    this.#onBytes = onBytes;
    this.#leftBytes = maxBytes;
    this.#note = note;
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (bytes.length > this.#leftBytes) this.#note("limit");
    const part = bytes.subarray(0, this.#leftBytes);
    this.#leftBytes -= part.length;
    this.sentBytes += part.length;
    if (part.length > 0) this.#onBytes(part);
  }

  async end(): Promise<void> {}
}

/** Input chunk size: a small chunk cannot expand beyond memory before the limit is checked. */
const inputPieceBytes = 16_384;

/** One coding, decoded by zlib's stream on its thread pool. */
class DecodingStage implements Stage {
  readonly #coding: ContentCoding;
  readonly #next: Stage;
  readonly #note: (reason: DecodingStop) => void;
  #leftBytes: number;
  #stream: Transform | undefined;
  /** Settles when the stream is closed for any reason. */
  #closed: Promise<void> = Promise.resolve();
  #isDone = false;
  #outputs: Uint8Array[] = [];

  constructor(coding: ContentCoding, next: Stage, maxBytes: number, note: (reason: DecodingStop) => void) {
    this.#coding = coding;
    this.#next = next;
    this.#leftBytes = maxBytes;
    this.#note = note;
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let start = 0; start < bytes.length && !this.#isDone; start += inputPieceBytes) {
      const stream = (this.#stream ??= this.#open(bytes[0] ?? 0));
      const { promise, resolve } = Promise.withResolvers<undefined>();
      stream.write(bytes.subarray(start, start + inputPieceBytes), () => resolve(undefined));
      await Promise.race([promise, this.#closed]);
      await this.#passOn();
    }
  }

  async end(): Promise<void> {
    this.#stream?.end();
    await this.#closed;
    await this.#passOn();
    await this.#next.end();
  }

  async #passOn(): Promise<void> {
    const outputs = this.#outputs;
    this.#outputs = [];
    for (const output of outputs) await this.#next.write(output);
  }

  #open(firstOctet: number): Transform {
    const stream = openStream(this.#coding, firstOctet);
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.#closed = promise;
    stream.on("data", (output: Buffer) => this.#take(output));
    stream.on("error", (error) => this.#note(stopOf(error)));
    stream.on("close", () => {
      this.#isDone = true;
      resolve(undefined);
    });
    return stream;
  }

  #take(output: Buffer): void {
    const part = output.subarray(0, this.#leftBytes);
    this.#leftBytes -= part.length;
    if (part.length > 0) this.#outputs.push(part);
    if (part.length === output.length) return;
    this.#note("limit");
    this.#stream?.destroy();
  }
}

function openStream(coding: ContentCoding, firstOctet: number): Transform {
  switch (coding) {
    case "gzip":
      return createGunzip();
    case "deflate":
      return hasZlibHeader(firstOctet) ? createInflate() : createInflateRaw();
    case "br":
      return createBrotliDecompress();
    case "zstd":
      return createZstdDecompress();
  }
}
