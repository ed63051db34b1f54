import { Buffer } from "node:buffer";
import type { Transform } from "node:stream";
import {
  brotliDecompressSync,
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
} from "node:zlib";
import { splitOutsideQuotes } from "./media-type.ts";

/** A supported content coding (RFC 9110 section 8.4.1). */
export type ContentCoding = "gzip" | "deflate" | "br" | "zstd";

/** Why decoding stopped: truncated or damaged input, output beyond the limit, or an unknown coding. */
export type DecodingStop = "truncated" | "damaged" | "limit" | "unsupported";

export interface DecodedContent {
  /** Everything, or the available part if `stop` is set; never more than the limit. */
  bytes: Uint8Array;
  stop: DecodingStop | undefined;
  /**
   * Codings that remain on `bytes`, in the order they were applied: unknown ones, or those of a body that is not in
   * them. With `damaged` and an empty list, `bytes` are what could be decoded.
   */
  remaining: readonly string[];
}

/** `maxBytes` bounds the output of every step; default 64 MiB. */
export interface DecodingLimits {
  maxBytes?: number;
}

const defaultMaxBytes = 64 * 1024 * 1024;

/** Longer chains are not decoded, as in curl: a chain multiplies the expansion of a small input. */
export const maxCodings = 5;

const codingNames = new Map<string, ContentCoding>([
  ["gzip", "gzip"],
  ["x-gzip", "gzip"],
  ["deflate", "deflate"],
  ["br", "br"],
  ["zstd", "zstd"],
]);

/** The codings of Content-Encoding values in lower case, in the order they were applied, without `identity`. */
export function parseContentEncoding(values: string | readonly string[] | undefined): string[] {
  if (values === undefined) return [];
  const text = typeof values === "string" ? values : values.join(",");
  return splitOutsideQuotes(text.toLowerCase(), ",").filter((coding) => coding !== "" && coding !== "identity");
}

/** The codings to decode, last applied first, and those that remain because one is unknown. */
export function decodingPlan(contentEncoding: string | readonly string[] | undefined): {
  steps: ContentCoding[];
  remaining: string[];
} {
  const remaining = parseContentEncoding(contentEncoding);
  const steps: ContentCoding[] = [];
  if (remaining.length > maxCodings) return { steps, remaining };
  for (let name = remaining.at(-1); name !== undefined; name = remaining.at(-1)) {
    const coding = codingNames.get(name);
    if (coding === undefined) break;
    steps.push(coding);
    remaining.pop();
  }
  return { steps, remaining };
}

/** The remaining codings as the start of a sentence: `the content coding foo`, `6 content codings, more than 5,`. */
export function remainingCodings(remaining: readonly string[]): string {
  return remaining.length > maxCodings
    ? `${remaining.length} content codings, more than ${maxCodings},`
    : `the content coding ${remaining.join(", ")}`;
}

/**
 * Whether a `deflate` body begins with the zlib header (RFC 1950 section 2.2) it should have; some servers send raw
 * deflate. The first octet tells: in raw deflate the low nibble 8 would be a stored block with padding that no encoder
 * writes.
 */
const hasZlibHeader = (firstOctet: number): boolean => (firstOctet & 0x0f) === 8;

/** Bytes that are inspected to tell text from coded content. */
const PROBED_BYTES = 256;

/** Shorter coded content may be plain text by chance: Brotli writes an empty body as `;`. */
const MIN_PLAIN_BYTES = 16;

/** Whether a body is certainly plain text despite its Content-Encoding, before an attempt to decode it. */
const isSurelyPlainText = (bytes: Uint8Array): boolean => bytes.length >= MIN_PLAIN_BYTES && isPlainText(bytes);

/** Whether an undecodable body is plain text: UTF-8 without control characters. */
function isPlainText(bytes: Uint8Array): boolean {
  const probed = bytes.subarray(0, PROBED_BYTES);
  let isAscii = true;
  for (const byte of probed) {
    const isControl = byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d;
    if (isControl || byte === 0x7f) return false;
    if (byte >= 0x80) isAscii = false;
  }
  if (isAscii) return probed.length > 0;
  try {
    // The last character may be incomplete.
    new TextDecoder("utf-8", { fatal: true }).decode(probed, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/** Names of codings in the order they were applied, from the steps in decoding order. */
function stillOn(remaining: readonly string[], steps: readonly ContentCoding[]): string[] {
  return [...remaining, ...steps.toReversed()];
}

function stopOf(error: unknown): DecodingStop {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ERR_BUFFER_TOO_LARGE") return "limit";
  // Brotli reports a short input by its message only.
  const isShort = code === "Z_BUF_ERROR" || (error instanceof Error && error.message === "unexpected end of file");
  return isShort ? "truncated" : "damaged";
}

/**
 * Decodes a complete body. A body that is not in its coding is returned unchanged, with the coding in `remaining`; a
 * damaged one (wrong checksum, trailing bytes) yields what could be decoded; beyond the limit nothing is returned. An
 * empty body needs no decoding.
 */
export function decodeContentSync(
  body: Uint8Array,
  contentEncoding: string | readonly string[] | undefined,
  limits: DecodingLimits = {},
): DecodedContent {
  const { steps, remaining } = decodingPlan(contentEncoding);
  let bytes = body;
  let stop: DecodingStop | undefined;
  for (const [at, coding] of steps.entries()) {
    if (bytes.length === 0) break;
    const step = decodeStep(bytes, coding, limits.maxBytes ?? defaultMaxBytes);
    if (step === undefined) return { bytes, stop: stop ?? "damaged", remaining: stillOn(remaining, steps.slice(at)) };
    bytes = step.bytes;
    stop ??= step.stop;
  }
  return { bytes, stop: stop ?? (remaining.length > 0 ? "unsupported" : undefined), remaining };
}

/** A Brotli meta-block (RFC 7932 section 9.2): the maximum output that one more input byte can cause. */
const maxOfOneByte = 16 * 1024 * 1024;

/**
 * The first `maxBytes` of the decoded body; `maxBytes` bounds the output of every step. Damaged bodies, and those
 * that are not in their coding, are treated as in `decodeContentSync`. A body beyond the limit is decoded several
 * times, each time to at most 16 MiB beyond it.
 */
export function decodeBeginningSync(
  body: Uint8Array,
  contentEncoding: string | readonly string[] | undefined,
  maxBytes: number,
): Uint8Array {
  if (body.length < MIN_PLAIN_BYTES) {
    const { bytes: whole, stop } = decodeContentSync(body, contentEncoding, { maxBytes });
    if (stop !== "limit") return whole.subarray(0, maxBytes);
  }
  let bytes = body;
  for (const coding of decodingPlan(contentEncoding).steps) {
    if (bytes.length === 0) break;
    const beginning = decodeBeginning(bytes, coding, maxBytes);
    if (beginning === undefined) return bytes.subarray(0, maxBytes);
    bytes = beginning;
  }
  return bytes;
}

/**
 * zlib returns nothing if the output is too large, so this searches for a prefix of the input with enough output but
 * not too much. Undefined for an input that is not in the coding.
 */
function decodeBeginning(bytes: Uint8Array, coding: ContentCoding, maxBytes: number): Uint8Array | undefined {
  if (isSurelyPlainText(bytes)) return undefined;
  let tooShort = 0;
  let tooLong = bytes.length + 1;
  for (let length = bytes.length; ; length = lengthBetween(tooShort, tooLong)) {
    try {
      const decoded = decompress(bytes.subarray(0, length), coding, maxBytes + maxOfOneByte, true);
      if (decoded.length >= maxBytes || tooLong - length === 1) return decoded.subarray(0, maxBytes);
      tooShort = length;
    } catch (error) {
      if (stopOf(error) !== "limit") return isPlainText(bytes) ? undefined : decodeUndamaged(bytes, coding, maxBytes);
      if (length - tooShort === 1) return nothing;
      tooLong = length;
    }
  }
}

/** The geometric mean: short inputs are cheap to try, and their expansion is unpredictable. */
function lengthBetween(tooShort: number, tooLong: number): number {
  const middle = Math.round(Math.sqrt(Math.max(1, tooShort) * tooLong));
  return Math.min(Math.max(middle, tooShort + 1), tooLong - 1);
}

const nothing = new Uint8Array(0);

/** Undefined for an input that is not in the coding. */
function decodeStep(
  bytes: Uint8Array,
  coding: ContentCoding,
  maxBytes: number,
): { bytes: Uint8Array; stop: DecodingStop | undefined } | undefined {
  if (isSurelyPlainText(bytes)) return undefined;
  try {
    return { bytes: decompress(bytes, coding, maxBytes, false), stop: undefined };
  } catch (error) {
    const stop = stopOf(error);
    if (stop === "limit") return { bytes: nothing, stop };
    if (isPlainText(bytes)) return undefined;
    if (stop === "damaged") return damagedStep(bytes, coding, maxBytes);
  }
  try {
    return { bytes: decompress(bytes, coding, maxBytes, true), stop: "truncated" };
  } catch (error) {
    return stopOf(error) === "limit" ? { bytes: nothing, stop: "limit" } : damagedStep(bytes, coding, maxBytes);
  }
}

function damagedStep(bytes: Uint8Array, coding: ContentCoding, maxBytes: number): ReturnType<typeof decodeStep> {
  const decoded = decodeUndamaged(bytes, coding, maxBytes);
  return decoded && { bytes: decoded, stop: "damaged" };
}

/** Output of the longest decodable prefix of a damaged input; undefined if empty. */
function decodeUndamaged(bytes: Uint8Array, coding: ContentCoding, maxBytes: number): Uint8Array | undefined {
  let decoded: Uint8Array = nothing;
  let good = 0;
  let bad = bytes.length;
  while (bad - good > 1) {
    const length = Math.floor((good + bad) / 2);
    try {
      decoded = decompress(bytes.subarray(0, length), coding, maxBytes, true);
      good = length;
    } catch {
      bad = length;
    }
  }
  return decoded.length === 0 ? undefined : decoded;
}

/** `mayEndEarly` flushes at the end of the input, so that the output so far is returned. */
function decompress(bytes: Uint8Array, coding: ContentCoding, maxBytes: number, mayEndEarly: boolean): Buffer {
  // zlib refuses a limit of 0.
  const maxOutputLength = Math.max(1, maxBytes);
  const zlibFlush = mayEndEarly ? { finishFlush: constants.Z_SYNC_FLUSH } : {};
  switch (coding) {
    case "gzip":
      return gunzipSync(bytes, { maxOutputLength, ...zlibFlush });
    case "deflate":
      return hasZlibHeader(bytes[0] ?? 0)
        ? inflateSync(bytes, { maxOutputLength, ...zlibFlush })
        : inflateRawSync(bytes, { maxOutputLength, ...zlibFlush });
    case "br":
      return brotliDecompressSync(bytes, {
        maxOutputLength,
        ...(mayEndEarly ? { finishFlush: constants.BROTLI_OPERATION_FLUSH } : {}),
      });
    case "zstd":
      return zstdDecompressSync(bytes, {
        maxOutputLength,
        ...(mayEndEarly ? { finishFlush: constants.ZSTD_e_flush } : {}),
      });
  }
}

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

/** As `decodeContentSync`, off the main thread, and with the output before the limit. */
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
