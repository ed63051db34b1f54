// Tested by content-coding.test.ts
import { Buffer } from "node:buffer";
import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from "node:zlib";
import {
  decodingPlan,
  defaultMaxBytes,
  hasZlibHeader,
  stopOf,
  type ContentCoding,
  type DecodedContent,
  type DecodingLimits,
  type DecodingStop,
} from "./decoding-plan.ts";

/** Undoes content codings piece by piece. Pieces given to `write` must not be changed afterwards. */
export interface ContentDecoder {
  /** Resolves when the piece has been taken in; the bytes it gave have been handed out, or will be by the next ones. */
  write(piece: Uint8Array): Promise<void>;
  /** Call it once, after the last piece. Never rejects. */
  end(): Promise<Omit<DecodedContent, "bytes">>;
}

/**
 * A decoder that hands out bytes as soon as they are there, never more than the limit in all. After a stop further
 * input is swallowed.
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
  let next: Stage = new Outlet(onBytes, maxBytes, note);
  for (const coding of steps.toReversed()) next = new DecodingStage(coding, next, maxBytes, note);
  const first = next;
  return {
    async write(piece) {
      if (stop === undefined && piece.length > 0) await first.write(piece);
    },
    async end() {
      await first.end();
      return { stop: stop ?? (remaining.length > 0 ? "unsupported" : undefined), remaining };
    },
  };
}

/**
 * Like `decodeContentSync`, off the main thread, and with the bytes that could be decoded before a stop: all of them
 * for a truncated body or at the limit; before damage zlib keeps the last few kilobytes to itself.
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

/** Counts what goes out. */
class Outlet implements Stage {
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
    if (part.length > 0) this.#onBytes(part);
  }

  async end(): Promise<void> {}
}

/** So much input at a time: a small piece cannot grow to more than fits in memory before the next look at the limit. */
const inputPieceBytes = 16_384;

/** One coding, undone by zlib's stream on its thread pool. */
class DecodingStage implements Stage {
  readonly #coding: ContentCoding;
  readonly #next: Stage;
  readonly #note: (reason: DecodingStop) => void;
  #leftBytes: number;
  #stream: Transform | undefined;
  /** Settles when the stream is closed, for whatever reason. */
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
