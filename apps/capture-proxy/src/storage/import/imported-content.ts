import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import type { LargeText } from "@headworks/har";
import {
  type ContentCoding,
  createContentDecoder,
  decodeContentSync,
  decodingPlan,
  encodeInPieces,
  parseContentEncoding,
} from "@headworks/http-fields/content-coding";
import { type ImportedMessage, keptBytes, type StoredFile } from "./imported-entry.ts";

/** Fast settings: the result stays in the process. */
const ENCODERS: Readonly<Record<ContentCoding, (bytes: Uint8Array) => Uint8Array>> = {
  gzip: (bytes) => gzipSync(bytes, { level: 1 }),
  deflate: (bytes) => deflateSync(bytes, { level: 1 }),
  br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: (bytes) => zstdCompressSync(bytes),
};

/** The text of a large HAR body, in a file. */
export interface LargeContent {
  readonly text: LargeText;
  readonly isBase64: boolean;
}

/** A HAR body in the form in which entries hold bodies. */
export interface ImportedContent {
  readonly body: ImportedMessage["body"];
  /** Total size; `body` is shorter if truncated. */
  readonly totalBytes: number;
  /** The fields name an unknown coding that the body does not have. */
  readonly isPlain: boolean;
}

/** Receives bodies that are not in memory. */
export interface FileTarget {
  /** Stored prefix of a body; the rest is only counted. */
  readonly maxBodyBytes: number;
  nextFile(): number;
  /** Copies the piece. */
  piece(file: number, bytes: Uint8Array, isLast: boolean): void;
  /** Resolves when few enough pieces are in flight. */
  hasRoom(): Promise<void>;
}

/**
 * Restores the content codings of imported content; see `codedBody`. `contentEncoding` is undefined for content that is
 * still coded.
 */
export function contentInMemory(
  bytes: Uint8Array,
  contentEncoding: readonly string[] | undefined,
  maxBodyBytes: number,
): ImportedContent {
  const coded = contentEncoding === undefined ? bytes : codedBody(bytes, contentEncoding);
  const whole = coded ?? bytes;
  return {
    body: whole.length > maxBodyBytes ? whole.subarray(0, maxBodyBytes) : whole,
    totalBytes: whole.length,
    isPlain: coded === undefined,
  };
}

/** Like {@link contentInMemory}, streaming to a body file. */
export async function contentInFile(
  content: LargeContent,
  contentEncoding: readonly string[] | undefined,
  target: FileTarget,
): Promise<ImportedContent> {
  const pieces = (): Iterable<Uint8Array> => content.text.bytePieces(content.isBase64);
  const codings = contentEncoding ?? [];
  const isAsAnnounced = parseContentEncoding(codings).length === 0 || (await isCoded(pieces(), codings));
  const coded = isAsAnnounced ? pieces() : encodeInPieces(pieces(), codings);
  return { ...(await writtenToFile(coded ?? pieces(), target)), isPlain: coded === undefined };
}

/** Message about a truncated body. */
export function cutNote(side: string, found: Omit<ImportedContent, "isPlain"> | undefined): string[] {
  if (found === undefined || !isCut(found)) return [];
  const sizes = `${keptBytes(found.body)} of ${found.totalBytes} bytes are kept`;
  return [`the body of its ${side} is larger than max_body_size: ${sizes}`];
}

export function isCut({ body, totalBytes }: Omit<ImportedContent, "isPlain">): boolean {
  return keptBytes(body) < totalBytes;
}

/** Writes bytes up to the target's limit to a body file. */
export async function writtenToFile(
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  target: FileTarget,
): Promise<Omit<ImportedContent, "isPlain">> {
  const writer = new FileWriter(target);
  for await (const piece of pieces) await writer.write(piece);
  return await writer.end();
}

/** If a prefix of this size decodes, the content is coded; the rest is not checked. */
const TRIED_BYTES = 1_048_576;

/** Whether decoding succeeds with a non-empty result, like `codedBody` in memory. */
async function isCoded(pieces: Iterable<Uint8Array>, contentEncoding: readonly string[]): Promise<boolean> {
  let [triedBytes, decodedBytes] = [0, 0];
  const count = (bytes: Uint8Array): void => void (decodedBytes += bytes.length);
  const decoder = createContentDecoder(contentEncoding, count, { maxBytes: TRIED_BYTES });
  for (const piece of pieces) {
    await decoder.write(piece);
    triedBytes += piece.length;
    if (decodedBytes >= TRIED_BYTES || (decodedBytes === 0 && triedBytes >= TRIED_BYTES)) break;
  }
  const { stop, remaining } = await decoder.end();
  return remaining.length === 0 && (decodedBytes >= TRIED_BYTES || (stop === undefined && decodedBytes > 0));
}

const CHUNK_BYTES = 1_048_576;

/** Writes a prefix of a body to its file and counts all of it. */
class FileWriter {
  readonly #target: FileTarget;
  /** Coalesces pieces to reduce the number of messages. */
  readonly #chunk = new Uint8Array(CHUNK_BYTES);
  #file: number | undefined;
  #used = 0;
  #storedBytes = 0;
  #totalBytes = 0;

  constructor(target: FileTarget) {
    this.#target = target;
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#totalBytes += bytes.length;
    let rest = bytes.subarray(0, this.#target.maxBodyBytes - this.#storedBytes);
    this.#storedBytes += rest.length;
    while (rest.length > 0) {
      const part = rest.subarray(0, CHUNK_BYTES - this.#used);
      this.#chunk.set(part, this.#used);
      this.#used += part.length;
      rest = rest.subarray(part.length);
      if (this.#used === CHUNK_BYTES) await this.#send(false);
    }
  }

  async end(): Promise<Omit<ImportedContent, "isPlain">> {
    if (this.#storedBytes > 0) await this.#send(true);
    const file = this.#file;
    const body: StoredFile | undefined = file === undefined ? undefined : { file, sizeBytes: this.#storedBytes };
    return { body, totalBytes: this.#totalBytes };
  }

  async #send(isLast: boolean): Promise<void> {
    this.#file ??= this.#target.nextFile();
    this.#target.piece(this.#file, this.#chunk.subarray(0, this.#used), isLast);
    this.#used = 0;
    await this.#target.hasRoom();
  }
}

/**
 * Restores the content codings of an imported body, since entries hold bodies as announced by Content-Encoding. Most
 * programs write decoded bodies: those are encoded again, so fields and content stay consistent although the bytes are
 * not the received ones. Bodies that still have their codings stay as they are. Undefined for unknown or too many
 * codings.
 */
function codedBody(bytes: Uint8Array, contentEncoding: readonly string[]): Uint8Array | undefined {
  const { steps, remaining } = decodingPlan(contentEncoding);
  if (bytes.length === 0 || steps.length + remaining.length === 0 || isCodedBytes(bytes, contentEncoding)) return bytes;
  if (remaining.length > 0) return undefined;
  return steps.toReversed().reduce((coded, coding) => ENCODERS[coding](coded), bytes);
}

/** Whether decoding succeeds with a non-empty result; uncoded data hardly ever does. */
function isCodedBytes(bytes: Uint8Array, contentEncoding: readonly string[]): boolean {
  const { bytes: decoded, stop } = decodeContentSync(bytes, contentEncoding);
  return stop === "limit" || (stop === undefined && decoded.length > 0);
}
