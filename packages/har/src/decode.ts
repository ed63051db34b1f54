import type { HarEntry } from "./har.ts";
import { type KeptText, LARGE_TEXT_BYTES, LongStrings, TextInMemory } from "./large-text.ts";
import { readHarEntry } from "./read-entry.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Byte-wise scanning up to this length; beyond it the engine's search is faster. */
const SHORT_STRING = 24;

/** Finds the end of a JSON value in one pass over chunks. `JSON.parse` validates the content. */
class ValueScanner {
  readonly #maxDepth: number;
  #depth = 0;
  #kind: "none" | "scalar" | "string" | "container" = "none";
  #inString = false;
  #escaped = false;
  /** Offset after the value, once `scan` returned true. */
  end = 0;
  /** Whether the value exceeds the nesting limit; it is scanned to its end nevertheless. */
  isTooDeep = false;

  constructor(maxDepth: number) {
    this.#maxDepth = maxDepth;
  }

  /** Starts a value with the next scanned byte, which must not be white space. */
  begin(): void {
    this.#depth = 0;
    this.#kind = "none";
    this.#inString = false;
    this.#escaped = false;
    this.isTooDeep = false;
  }

  /** Returns true if the value ends in this chunk. */
  scan(chunk: Uint8Array, from: number): boolean {
    let at = from;
    if (this.#kind === "none" && at < chunk.length) at = this.#first(chunk[at] ?? 0, at);
    if (this.#kind === "scalar") return this.#scalar(chunk, at);
    while (at < chunk.length) {
      if (this.#inString) {
        at = this.#string(chunk, at);
        if (this.#inString) return false;
        if (this.#kind === "string") return this.#finish(at);
        continue;
      }
      const byte = chunk[at] ?? 0;
      at += 1;
      if (byte === QUOTE) this.#inString = true;
      else if (byte === 0x7b || byte === 0x5b) {
        this.#depth += 1;
        if (this.#depth > this.#maxDepth) this.isTooDeep = true;
      } else if (byte === 0x7d || byte === 0x5d) {
        this.#depth -= 1;
        if (this.#depth === 0) return this.#finish(at);
      }
    }
    return false;
  }

  #finish(at: number): boolean {
    this.end = at;
    return true;
  }

  #first(byte: number, at: number): number {
    if (byte === QUOTE) {
      this.#kind = "string";
      this.#inString = true;
      return at + 1;
    }
    const isContainer = byte === 0x7b || byte === 0x5b;
    this.#kind = isContainer ? "container" : "scalar";
    // The first byte of a scalar always belongs to it: every value advances the scan.
    return isContainer ? at : at + 1;
  }

  #scalar(chunk: Uint8Array, from: number): boolean {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      // A comma, closing bracket or white space ends a number or literal without being part of it.
      if (byte === 0x2c || byte === 0x7d || byte === 0x5d || byte <= 0x20) return this.#finish(at);
    }
    return false;
  }

  /** Returns the offset after the closing quotation mark, or the chunk length if the string continues. */
  #string(chunk: Uint8Array, from: number): number {
    let at = from;
    if (this.#escaped && at < chunk.length) {
      this.#escaped = false;
      at += 1;
    }
    const nearby = Math.min(chunk.length, at + SHORT_STRING);
    while (at < nearby) {
      const byte = chunk[at];
      if (byte === QUOTE) return this.#closeString(at);
      if (byte === BACKSLASH) {
        at += 1;
        if (at === chunk.length) this.#escaped = true;
      }
      at += 1;
    }
    while (at < chunk.length) {
      const quote = chunk.indexOf(QUOTE, at);
      const stop = quote === -1 ? chunk.length : quote;
      let backslashes = 0;
      while (stop - 1 - backslashes >= at && chunk[stop - 1 - backslashes] === BACKSLASH) backslashes += 1;
      const isEscaped = backslashes % 2 === 1;
      if (quote === -1) {
        this.#escaped = isEscaped;
        return chunk.length;
      }
      if (!isEscaped) return this.#closeString(quote);
      at = quote + 1;
    }
    return chunk.length;
  }

  #closeString(quote: number): number {
    this.#inString = false;
    return quote + 1;
  }
}

/** A decoded item. `leftOut`: unreadable header fields. Messages of rejected elements begin with `entry N:`. */
export type HarItem =
  | { readonly kind: "entry"; readonly index: number; readonly entry: HarEntry; readonly leftOut: readonly string[] }
  | { readonly kind: "refused"; readonly index: number; readonly byteOffset: number; readonly message: string };

export interface HarDecoderOptions {
  /** Larger elements are rejected. Default 512 MB. */
  readonly maxEntryBytes?: number;
  /** Deeper nested elements are rejected. Default 64. */
  readonly maxDepth?: number;
  /** Creates storage for a long string while its entry is read. Default: memory. */
  readonly keepText?: () => KeptText;
}

/** The document is not a HAR; `byteOffset` is the position of the error. */
export class HarFormatError extends Error {
  readonly byteOffset: number;

  constructor(message: string, byteOffset: number) {
    super(`${message} (at byte ${byteOffset})`);
    this.name = "HarFormatError";
    this.byteOffset = byteOffset;
  }
}

type State =
  | "start"
  | "firstKey"
  | "key"
  | "inKey"
  | "colon"
  | "value"
  | "skip"
  | "after"
  | "firstElement"
  | "element"
  | "inElement"
  | "afterElement"
  | "done";

const DEFAULT_ENTRY_BYTES = 512 * 1024 * 1024;
const DEFAULT_DEPTH = 64;

/** No longer key is known. */
const MAX_KEY_LENGTH = 256;

/** Longer values of the log's own members are omitted from `header`. */
const MAX_MEMBER_LENGTH = 65_536;
const HEADER_MEMBERS: ReadonlySet<string> = new Set(["version", "creator", "browser", "comment"]);
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/**
 * Incremental decoder of HAR 1.1 and 1.2 documents of any size; memory holds at most one entry. `entries` may be
 * anywhere among the members of `log`; duplicate and unknown members are ignored.
 *
 *     for await (const chunk of file) for (const item of decoder.write(chunk)) …
 *     decoder.end();
 */
export class HarDecoder {
  readonly #maxEntryBytes: number;
  readonly #scanner: ValueScanner;
  readonly #keepText: () => KeptText;
  #state: State = "start";
  #level: "root" | "log" = "root";
  #key = "";
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  #keeps = false;
  /** Holds the parts of a large element. */
  #strings: LongStrings | undefined;
  #elementOffset = 0;
  #index = 0;
  #seen = 0;
  #sawEntries = false;
  readonly #header = new Map<string, unknown>();

  constructor(options: HarDecoderOptions = {}) {
    this.#maxEntryBytes = options.maxEntryBytes ?? DEFAULT_ENTRY_BYTES;
    this.#scanner = new ValueScanner(options.maxDepth ?? DEFAULT_DEPTH);
    this.#keepText = options.keepText ?? (() => new TextInMemory());
  }

  get bytesSeen(): number {
    return this.#seen;
  }

  /** Elements of `entries` so far, including rejected ones. */
  get entryCount(): number {
    return this.#index;
  }

  /** `version`, `creator`, `browser` and `comment` of the log as read so far; unchecked JSON values. */
  get header(): ReadonlyMap<string, unknown> {
    return this.#header;
  }

  /**
   * Decodes a chunk and yields completed items. The chunk may be reused after the generator ended; abandoning the
   * generator loses the rest of the chunk. Throws `HarFormatError`.
   */
  *write(chunk: Uint8Array): Generator<HarItem, void, void> {
    const base = this.#seen;
    let at = 0;
    while (at < chunk.length) {
      if (this.#state === "inElement") {
        const start = at;
        at = this.#throughElement(chunk, at);
        this.#seen = base + at;
        if (this.#state !== "inElement") yield this.#element(chunk, start, at);
      } else if (this.#state === "skip") at = this.#throughSkipped(chunk, at);
      else if (this.#state === "inKey") at = this.#throughKey(chunk, at);
      else if (this.#structure(chunk[at] ?? 0, base + at)) at += 1;
      this.#seen = base + at;
    }
  }

  /** Throws `HarFormatError` if the document is incomplete or has no `log.entries`. */
  end(): void {
    if (this.#state !== "done") {
      const isInEntries = ["inElement", "firstElement", "element"].includes(this.#state);
      const where = isInEntries ? `in entry ${this.#index}` : "before its end";
      throw new HarFormatError(this.#seen === 0 ? "the file is empty" : `the file stops ${where}`, this.#seen);
    }
    if (!this.#sawEntries) throw new HarFormatError("there is no `log.entries` array", this.#seen);
  }

  /** Handles one byte outside of values; false if it starts a value. */
  #structure(byte: number, offset: number): boolean {
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) return true;
    switch (this.#state) {
      case "start":
        if (offset < 3 && byte === BYTE_ORDER_MARK[offset]) return true;
        if (byte !== 0x7b) throw new HarFormatError("a HAR begins with `{`", offset);
        this.#state = "firstKey";
        return true;
      case "firstKey":
      case "key":
        if (byte === 0x7d && this.#state === "firstKey") this.#close();
        else if (byte === 0x22) this.#beginKey();
        else throw new HarFormatError("a member name is expected", offset);
        return true;
      case "colon":
        if (byte !== 0x3a) throw new HarFormatError("a colon is expected", offset);
        this.#state = "value";
        return true;
      case "value":
        return this.#beginValue(byte, offset);
      case "after":
        if (byte === 0x2c) this.#state = "key";
        else if (byte === 0x7d) this.#close();
        else throw new HarFormatError("`,` or `}` is expected", offset);
        return true;
      case "firstElement":
      case "element":
        return this.#beginElement(byte, offset);
      case "afterElement":
        if (byte === 0x2c) this.#state = "element";
        else if (byte === 0x5d) this.#state = "after";
        else throw new HarFormatError("`,` or `]` is expected", offset);
        return true;
      case "done":
        // Some programs pad the last block with zeros.
        if (byte !== 0) throw new HarFormatError("there is something after the end of the document", offset);
        return true;
      case "inKey":
      case "skip":
      case "inElement":
        return false;
    }
  }

  #close(): void {
    this.#state = this.#level === "log" ? "after" : "done";
    this.#level = "root";
  }

  #beginKey(): void {
    this.#scanner.begin();
    this.#scanner.scan(QUOTATION_MARK, 0);
    this.#collect(true);
    this.#state = "inKey";
  }

  #collect(keeps: boolean): void {
    this.#parts = [];
    this.#partBytes = 0;
    this.#keeps = keeps;
    this.#strings = undefined;
  }

  /** Buffers a piece; drops everything above the limit. */
  #keep(piece: Uint8Array, limit: number): void {
    this.#partBytes += piece.length;
    if (!this.#keeps) return;
    if (this.#partBytes <= limit) this.#parts.push(piece.slice());
    else {
      this.#keeps = false;
      this.#parts = [];
    }
  }

  #throughKey(chunk: Uint8Array, from: number): number {
    const isComplete = this.#scanner.scan(chunk, from);
    const to = isComplete ? this.#scanner.end : chunk.length;
    this.#keep(chunk.subarray(from, to), MAX_KEY_LENGTH);
    if (isComplete) {
      const name = this.#keeps ? parseJson([QUOTATION_MARK, ...this.#parts]) : undefined;
      this.#key = name?.ok === true && typeof name.value === "string" ? name.value : "";
      this.#state = "colon";
    }
    return to;
  }

  #beginValue(byte: number, offset: number): boolean {
    if (this.#level === "root" && this.#key === "log" && byte === 0x7b) {
      this.#level = "log";
      this.#state = "firstKey";
      return true;
    }
    if (this.#level === "log" && this.#key === "entries" && byte === 0x5b) {
      this.#sawEntries = true;
      this.#state = "firstElement";
      return true;
    }
    if (byte === 0x2c || byte === 0x7d || byte === 0x5d || byte === 0x3a) {
      throw new HarFormatError("a value is expected", offset);
    }
    this.#scanner.begin();
    this.#collect(this.#level === "log" && HEADER_MEMBERS.has(this.#key));
    this.#state = "skip";
    return false;
  }

  #throughSkipped(chunk: Uint8Array, from: number): number {
    const isComplete = this.#scanner.scan(chunk, from);
    const to = isComplete ? this.#scanner.end : chunk.length;
    if (this.#keeps) this.#keep(chunk.subarray(from, to), MAX_MEMBER_LENGTH);
    if (isComplete) {
      const value = this.#keeps ? parseJson(this.#parts) : undefined;
      if (value?.ok === true) this.#header.set(this.#key, value.value);
      this.#state = "after";
    }
    return to;
  }

  #beginElement(byte: number, offset: number): boolean {
    if (byte === 0x5d && this.#state === "firstElement") {
      this.#state = "after";
      return true;
    }
    if (byte === 0x2c || byte === 0x5d || byte === 0x7d || byte === 0x3a) {
      throw new HarFormatError("an entry is expected", offset);
    }
    this.#scanner.begin();
    this.#collect(true);
    this.#elementOffset = offset;
    this.#state = "inElement";
    return false;
  }

  #throughElement(chunk: Uint8Array, from: number): number {
    if (this.#scanner.scan(chunk, from)) {
      this.#state = "afterElement";
      return this.#scanner.end;
    }
    this.#keepOfElement(chunk.subarray(from));
    return chunk.length;
  }

  /** Buffers a piece of an element; long strings of a large one go to separate storage. */
  #keepOfElement(piece: Uint8Array): void {
    if (this.#strings !== undefined && this.#partBytes + piece.length <= this.#maxEntryBytes) {
      this.#partBytes += piece.length;
      this.#strings.write(piece);
      return;
    }
    this.#strings = undefined;
    this.#keep(piece, this.#maxEntryBytes);
    if (!this.#keeps || this.#partBytes < LARGE_TEXT_BYTES) return;
    // The random mark cannot occur in the document, so placeholders are unambiguous.
    this.#strings = new LongStrings(crypto.randomUUID(), this.#keepText);
    for (const part of this.#parts) this.#strings.write(part);
    this.#parts = [];
  }

  #element(chunk: Uint8Array, from: number, to: number): HarItem {
    const index = this.#index;
    this.#index += 1;
    const size = this.#partBytes + to - from;
    const refused = (why: string): HarItem => ({
      kind: "refused",
      index,
      byteOffset: this.#elementOffset,
      message: `entry ${index}: ${why}`,
    });
    if (size > this.#maxEntryBytes) return refused(`has ${size} bytes, more than the allowed ${this.#maxEntryBytes}`);
    if (this.#scanner.isTooDeep) return refused("is nested too deep");
    const parsed = this.#parsedElement(chunk.subarray(from, to), size < LARGE_TEXT_BYTES);
    if (!parsed.ok) return refused(parsed.message);
    const read = readHarEntry(parsed.value);
    return read.ok ? { kind: "entry", index, entry: read.entry, leftOut: read.leftOut } : refused(read.message);
  }

  #parsedElement(rest: Uint8Array, isSmall: boolean): JsonReading {
    if (isSmall) return parseJson([...this.#parts, rest]);
    this.#keepOfElement(rest);
    const { json, texts } = this.#strings ?? { json: [], texts: undefined };
    this.#strings = undefined;
    if (texts === undefined || texts.size === 0) return parseJson(json);
    return parseJson(json, (_key, value) => (typeof value === "string" ? (texts.get(value) ?? value) : value));
  }
}

const QUOTATION_MARK = Uint8Array.of(0x22);
const NOTHING = new Uint8Array(0);

type JsonReading = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly message: string };

/** Omits the engine's message, which quotes the document and may contain a secret. */
function parseJson(pieces: Uint8Array[], reviver?: (key: string, value: unknown) => unknown): JsonReading {
  const text = utf8Text(pieces);
  if (text === undefined) return { ok: false, message: "is not valid UTF-8" };
  try {
    return { ok: true, value: JSON.parse(text, reviver) };
  } catch {
    return { ok: false, message: "is not JSON" };
  }
}

const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Above this size, memory matters more than time. */
const QUICK_BYTES = 1_048_576;

/** Joins and consumes the pieces; undefined if they are not UTF-8. */
function utf8Text(pieces: Uint8Array[]): string | undefined {
  const sizeBytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  try {
    if (sizeBytes <= QUICK_BYTES) return STRICT.decode(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces));
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    let text = "";
    for (const [index, piece] of pieces.entries()) {
      text += decoder.decode(piece, { stream: true });
      pieces[index] = NOTHING;
    }
    return text + decoder.decode();
  } catch {
    return undefined;
  }
}

/** Decodes a byte stream; see `HarDecoder`. Throws `HarFormatError`. */
export async function* decodeHar(
  source: AsyncIterable<Uint8Array>,
  options: HarDecoderOptions = {},
): AsyncGenerator<HarItem> {
  const decoder = new HarDecoder(options);
  for await (const chunk of source) yield* decoder.write(chunk);
  decoder.end();
}
