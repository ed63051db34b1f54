import type { LargeText } from "@headworks/har";
import { createContentDecoder, encodeInPieces, parseContentEncoding } from "@headworks/http-fields/content-coding";
import { codedBody } from "../read/coded-body.ts";
import { keptBytes } from "./imported-entry.ts";
import type { ImportedMessage, StoredFile } from "./imported-entry.ts";

/** The text of a large body of a HAR, still in its file. */
export interface LargeContent {
  readonly text: LargeText;
  readonly isBase64: boolean;
}

/** The content of a body of a HAR, in the form in which entries hold bodies. */
export interface ImportedContent {
  readonly body: ImportedMessage["body"];
  /** Of all of it; `body` has less when it was cut at the limit. */
  readonly totalBytes: number;
  /** The fields name a coding that is not on it, because it is not known here. */
  readonly isPlain: boolean;
}

/** What takes in a body that is not in memory. */
export interface FileTarget {
  /** Bytes of a body that are kept; the rest is counted. */
  readonly maxBodyBytes: number;
  nextFile(): number;
  /** Takes a copy of a piece. */
  piece(file: number, bytes: Uint8Array, isLast: boolean): void;
  /** Resolves when there are not too many pieces on their way. */
  hasRoom(): Promise<void>;
}

/**
 * Content of another program in the form that its Content-Encoding fields announce; see `codedBody`. `contentEncoding` is
 * undefined for content that has its codings on.
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

/** The same for content that is not in memory: it goes to a body's file piece by piece. */
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

/** The sentence about a body that was cut at the limit. */
export function cutNote(side: string, found: Omit<ImportedContent, "isPlain"> | undefined): string[] {
  if (found === undefined || !isCut(found)) return [];
  const sizes = `${keptBytes(found.body)} of ${found.totalBytes} bytes are kept`;
  return [`the body of its ${side} is larger than max_body_size: ${sizes}`];
}

export function isCut({ body, totalBytes }: Omit<ImportedContent, "isPlain">): boolean {
  return keptBytes(body) < totalBytes;
}

/** Writes bytes up to the target's limit into a body's file. */
export async function writtenToFile(
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  target: FileTarget,
): Promise<Omit<ImportedContent, "isPlain">> {
  const writer = new FileWriter(target);
  for await (const piece of pieces) await writer.write(piece);
  return await writer.end();
}

/** What is coded gives so much decoded, or something of so much, by no chance; the rest need not be looked at. */
const TRIED_BYTES = 1_048_576;

/** Whether the codings can be removed and leave something, as `codedBody` asks of bodies in memory. */
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

/** Writes the beginning of a body to its file, and counts all of it. */
class FileWriter {
  readonly #target: FileTarget;
  /** Pieces are gathered, so that a large body costs few messages. */
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

  /** What was written. */
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
