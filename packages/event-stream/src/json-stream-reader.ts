import type { Buffer } from "node:buffer";
import { KeptBytes } from "./kept-bytes.ts";

/** Result of a scan: bytes of an item, and whether the item ends. */
interface Scanned {
  /** Bytes of the item are those from `from` to before `to`. */
  readonly from: number;
  readonly to: number;
  /** Where the scan stopped; more than `to` where separators follow. */
  readonly next: number;
  /** `complete`: the item's last byte is among them. `broken`: it ends without being whole. `open`: more of it may come. */
  readonly outcome: "complete" | "broken" | "open";
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const RECORD_SEPARATOR = 0x1e;
const ARRAY_OPENS = 0x5b;
const ARRAY_CLOSES = 0x5d;
const OBJECT_OPENS = 0x7b;
const OBJECT_CLOSES = 0x7d;

/** Where inside an item the next byte stands. */
type State = "between" | "structure" | "string" | "bare";

/** Finds where JSON texts end that follow each other, by brackets and quotes alone. It keeps no bytes. */
class JsonScanner {
  readonly #isSequence: boolean;
  readonly #isArray: boolean;
  #state: State = "between";
  #depth = 0;
  #isEscaped = false;
  /** The bracket of the array around the items came; after it, commas separate them. */
  #isInArray = false;

  constructor(form: "concatenated" | "sequence" | "array") {
    this.#isSequence = form === "sequence";
    this.#isArray = form === "array";
  }

  /** An item that is not closed by a bracket or a quote is whole when nothing follows. */
  get isWholeAtEnd(): boolean {
    return this.#state === "bare";
  }

  /** Reads on from `at` to the end of an item, or of the piece. */
  scan(piece: Buffer, at: number): Scanned {
    let position = at;
    while (this.#state === "between" && position < piece.length) {
      const isItem = this.#begins(piece[position] as number);
      if (!isItem) position += 1;
    }
    const from = position;
    while (position < piece.length) {
      const byte = piece[position] as number;
      // Allowed nowhere inside JSON: what came before it was cut by its sender.
      if (byte === RECORD_SEPARATOR && this.#isSequence) {
        return this.#ended(from, position, position + 1, this.#atBreak());
      }
      if (this.#state === "bare" && this.#endsBare(byte)) return this.#ended(from, position, position, "complete");
      position += 1;
      if (this.#closes(byte)) return this.#ended(from, position, position, "complete");
    }
    return { from, to: position, next: position, outcome: "open" };
  }

  #atBreak(): Scanned["outcome"] {
    return this.#state === "bare" ? "complete" : "broken";
  }

  #ended(from: number, to: number, next: number, outcome: Scanned["outcome"]): Scanned {
    this.#state = "between";
    this.#depth = 0;
    this.#isEscaped = false;
    return { from, to, next, outcome };
  }

  /** Whether an item begins with this byte; it is not taken yet. */
  #begins(byte: number): boolean {
    if (isWhite(byte) || (byte === RECORD_SEPARATOR && this.#isSequence)) return false;
    if (this.#isArray && this.#isAroundItems(byte)) return false;
    if (byte === QUOTE || opens(byte)) this.#state = "structure";
    else this.#state = "bare";
    return true;
  }

  #isAroundItems(byte: number): boolean {
    if (this.#isInArray) return byte === COMMA || byte === ARRAY_CLOSES;
    if (byte !== ARRAY_OPENS) return false;
    this.#isInArray = true;
    return true;
  }

  #endsBare(byte: number): boolean {
    if (isWhite(byte) || byte === QUOTE || opens(byte)) return true;
    return this.#isInArray && (byte === COMMA || byte === ARRAY_CLOSES);
  }

  /** Takes a byte of an item; true when the item ends with it. */
  #closes(byte: number): boolean {
    if (this.#state === "bare") return false;
    if (this.#state === "string") {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) {
        this.#state = "structure";
        return this.#depth === 0;
      }
      return false;
    }
    if (byte === QUOTE) this.#state = "string";
    else if (opens(byte)) this.#depth += 1;
    else if (closes(byte)) {
      this.#depth -= 1;
      return this.#depth <= 0;
    }
    return false;
  }
}

function opens(byte: number): boolean {
  return byte === OBJECT_OPENS || byte === ARRAY_OPENS;
}

function closes(byte: number): boolean {
  return byte === OBJECT_CLOSES || byte === ARRAY_CLOSES;
}

function isWhite(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

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
