import type { Buffer } from "node:buffer";
import { JsonScanner } from "./json-scanner.ts";
import { KeptBytes } from "./kept-bytes.ts";

/**
 * How items follow each other.
 * - `lines`: one a line (JSON Lines, NDJSON); empty lines are none
 * - `concatenated`: one behind the other, with white space or nothing between them
 * - `sequence`: each behind a record separator (RFC 7464)
 * - `array`: the elements of one array, as they come
 */
export type JsonStreamForm = "lines" | "concatenated" | "sequence" | "array";

/** One item of a stream of JSON; whether it is JSON was not checked. */
export interface JsonItem {
  /** As it came, without what separates items; the first bytes of it when it is larger than the limit. */
  readonly bytes: Buffer;
  /** False: the stream, or a record of it, ended inside the item. */
  readonly isComplete: boolean;
  /** Bytes of the item, cut or not. */
  readonly sizeBytes: number;
  readonly isCut: boolean;
  /** Bytes of the stream since the item before, separators included. */
  readonly wireBytes: number;
}

export interface JsonStreamOptions {
  readonly form: JsonStreamForm;
  /** Of an item no more bytes than this are kept. */
  readonly maxItemBytes: number;
  /** Called with each item as soon as its last byte came. */
  readonly onItem: (item: JsonItem) => void;
}

const LF = 0x0a;
const CR = 0x0d;

/**
 * Splits a stream of JSON that may be cut into pieces anywhere. Items are found by their structure, so broken ones are
 * told as they are and never make it throw; memory is bounded by `maxItemBytes`.
 */
export class JsonStreamReader {
  readonly #onItem: (item: JsonItem) => void;
  readonly #item: KeptBytes;
  readonly #scanner: JsonScanner | undefined;
  #wireBytes = 0;
  #isBlank = true;

  constructor({ form, maxItemBytes, onItem }: JsonStreamOptions) {
    this.#onItem = onItem;
    this.#item = new KeptBytes(maxItemBytes);
    this.#scanner = form === "lines" ? undefined : new JsonScanner(form);
  }

  /** Takes the next bytes; they are referred to until their item is complete and must not be changed. */
  read(piece: Buffer): void {
    if (this.#scanner === undefined) this.#readLines(piece);
    else this.#scan(piece, this.#scanner);
  }

  /** Ends the stream; reports an unfinished last item. */
  end(): void {
    if (this.#scanner === undefined) {
      // The last line of a file need not end.
      if (!this.#isBlank) this.#tell(true);
    } else if (this.#item.sizeBytes > 0) {
      this.#tell(this.#scanner.isWholeAtEnd);
    }
  }

  #readLines(piece: Buffer): void {
    let at = 0;
    while (at < piece.length) {
      const found = piece.indexOf(LF, at);
      const end = found === -1 ? piece.length : found;
      const part = piece.subarray(at, end);
      this.#item.add(part);
      this.#isBlank &&= isBlank(part);
      at = found === -1 ? end : end + 1;
      this.#wireBytes += at - (end - part.length);
      if (found === -1) return;
      if (this.#isBlank) this.#item.take();
      else this.#tell(true);
      this.#isBlank = true;
    }
  }

  #scan(piece: Buffer, scanner: JsonScanner): void {
    let at = 0;
    while (at < piece.length) {
      const { from, to, next, outcome } = scanner.scan(piece, at);
      if (to > from) this.#item.add(piece.subarray(from, to));
      this.#wireBytes += next - at;
      at = next;
      if (outcome !== "open" && this.#item.sizeBytes > 0) this.#tell(outcome === "complete");
    }
  }

  #tell(isComplete: boolean): void {
    const { isCut } = this.#item;
    let { sizeBytes } = this.#item;
    let bytes = this.#item.take();
    // A CR before the LF belongs to the line's end.
    if (this.#scanner === undefined && !isCut && bytes.at(-1) === CR) {
      bytes = bytes.subarray(0, -1);
      sizeBytes -= 1;
    }
    const wireBytes = this.#wireBytes;
    this.#wireBytes = 0;
    this.#isBlank = true;
    this.#onItem({ bytes, isComplete, sizeBytes, isCut, wireBytes });
  }
}

function isBlank(bytes: Buffer): boolean {
  for (const byte of bytes) if (byte !== 0x20 && byte !== 0x09 && byte !== CR) return false;
  return true;
}
