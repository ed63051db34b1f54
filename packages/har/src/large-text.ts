/** Message about a body that should be base64 but is not. */
export const NOT_BASE64 = "holds a body that is not base64";

/** Checks base64 incrementally, in either alphabet: decoders skip invalid characters. */
class Base64Check {
  #digits = 0;
  #padding = 0;

  /** Returns false if the text so far cannot be base64. */
  add(part: string): boolean {
    const text = part.replaceAll(/[\t\n\r ]+/gu, "");
    const end = text.search(/[^A-Za-z0-9+/_-]/u);
    const digits = end === -1 ? text.length : end;
    if ((digits > 0 && this.#padding > 0) || /[^=]/u.test(text.slice(digits))) return false;
    this.#digits += digits;
    this.#padding += text.length - digits;
    return true;
  }

  /** Whether the text so far is complete base64. */
  get isWhole(): boolean {
    const rest = this.#digits % 4;
    return rest !== 1 && (this.#padding === 0 || (rest > 0 && this.#padding === 4 - rest));
  }
}

export function isBase64Text(text: string): boolean {
  const check = new Base64Check();
  return check.add(text) && check.isWhole;
}

/** Bytes converted at a time; a multiple of three: the concatenated base64 parts equal the base64 of the whole. */
const PART_BYTES = 196_608;

/** A large body to be written; its text is produced piece by piece. */
export class LargeBody {
  readonly #bytes: Uint8Array;
  readonly #isBase64: boolean;

  /** Without `isBase64` the bytes must be UTF-8. */
  constructor(bytes: Uint8Array, isBase64: boolean) {
    this.#bytes = bytes;
    this.#isBase64 = isBase64;
  }

  /** Same interface as `LargeText`. */
  toBytes(): Uint8Array {
    return this.#bytes;
  }

  /** The content of the JSON string, without quotation marks. */
  *jsonTexts(): Generator<string> {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    for (let at = 0; at < this.#bytes.length; at += PART_BYTES) {
      const part = this.#bytes.subarray(at, at + PART_BYTES);
      yield this.#isBase64
        ? Buffer.from(part.buffer, part.byteOffset, part.length).toString("base64")
        : JSON.stringify(decoder.decode(part, { stream: true })).slice(1, -1);
    }
  }
}

/** Longer strings are kept as bytes: as strings they would be in memory several times. */
export const LARGE_TEXT_BYTES = 4_194_304;

const [QUOTE, BACKSLASH] = [0x22, 0x5c];

const NOTHING = new Uint8Array(0);

/** Stores the raw bytes of a long JSON string, without quotation marks. */
export interface KeptText {
  /** Copies the piece. */
  add(piece: Uint8Array): void;
  /** Call after the last `add`. A piece is valid until the next one is requested. */
  pieces(): Iterable<Uint8Array>;
}

/** Readable once: pieces are released while reading. */
export class TextInMemory implements KeptText {
  readonly #pieces: Uint8Array[] = [];

  add(piece: Uint8Array): void {
    this.#pieces.push(piece.slice());
  }

  *pieces(): Generator<Uint8Array> {
    for (const [index, piece] of this.#pieces.entries()) {
      this.#pieces[index] = NOTHING;
      yield piece;
    }
  }
}

/** A long string of a JSON document, readable as often as its storage allows. */
export class LargeText {
  readonly #kept: KeptText;
  readonly #sizeBytes: number;

  /** @param sizeBytes bytes added to `kept` */
  constructor(kept: KeptText, sizeBytes: number) {
    this.#kept = kept;
    this.#sizeBytes = sizeBytes;
  }

  /**
   * The string as UTF-8, or its decoded base64. Throws a sentence if it is not a JSON string, not UTF-8 or not base64.
   */
  toBytes(isBase64: boolean): Uint8Array {
    // Escapes are never shorter than their characters.
    const bytes = Buffer.allocUnsafeSlow(isBase64 ? Math.ceil(this.#sizeBytes / 4) * 3 : this.#sizeBytes);
    let length = 0;
    const encoding = isBase64 ? "base64" : "utf8";
    for (const text of this.#parts(isBase64)) length += bytes.write(text, length, encoding);
    return new Uint8Array(bytes.buffer, 0, length);
  }

  /** The string in parts that split no character. Throws a sentence if it is not a JSON string or not UTF-8. */
  texts(): Generator<string> {
    return this.#texts();
  }

  /** Like `toBytes`, piece by piece. */
  *bytePieces(isBase64: boolean): Generator<Uint8Array> {
    for (const text of this.#parts(isBase64)) yield Buffer.from(text, isBase64 ? "base64" : "utf8");
  }

  /** Parts that can be decoded independently: base64 is cut at groups of four. */
  *#parts(isBase64: boolean): Generator<string> {
    if (!isBase64) {
      yield* this.#texts();
      return;
    }
    const check = new Base64Check();
    let open = "";
    for (const text of this.#texts()) {
      if (!check.add(text)) throw new Error(NOT_BASE64);
      const known = open + text.replaceAll(/[^A-Za-z0-9+/_-]+/gu, "");
      const whole = known.length - (known.length % 4);
      yield known.slice(0, whole);
      open = known.slice(whole);
    }
    if (!check.isWhole) throw new Error(NOT_BASE64);
    yield open;
  }

  /** Parts that split no character. */
  *#texts(): Generator<string> {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    let open = "";
    for (const piece of this.#kept.pieces()) {
      const text = open + utf8(decoder, piece, true);
      const end = endOfWhole(text);
      open = text.slice(end);
      yield jsonString(text.slice(0, end));
    }
    yield jsonString(open + utf8(decoder, NOTHING, false));
  }
}

/** Replaces the engine's errors, which quote the text and may contain a secret. */
function jsonString(inner: string): string {
  try {
    return JSON.parse(`"${inner}"`) as string;
  } catch {
    throw new Error("holds a text that is not JSON");
  }
}

function utf8(decoder: InstanceType<typeof TextDecoder>, bytes: Uint8Array, stream: boolean): string {
  try {
    return decoder.decode(bytes, { stream });
  } catch {
    throw new Error("is not valid UTF-8");
  }
}

/** End of the complete escapes of a part; the last one may continue in the next part. */
function endOfWhole(text: string): number {
  for (let at = Math.max(0, text.length - 12); at < text.length; at += 1) {
    if (text.charCodeAt(at) !== BACKSLASH) continue;
    let first = at;
    while (first > 0 && text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
    // The second of two backslashes starts no escape.
    const begin = (at - first) % 2 === 0 ? at : at - 1;
    // A high surrogate escape must not be decoded without its pair.
    const isPair = begin >= 6 && /^\\u[Dd][89ABab]/u.test(text.slice(begin - 6, begin));
    return isPair && !isEscaped(text, begin - 6) ? begin - 6 : begin;
  }
  return text.length;
}

function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (first > 0 && text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

/** Creates storage for a long string; `json` ends with its opening quote. Undefined: it stays in the JSON. */
type KeepLongString = (json: readonly Uint8Array[]) => KeptText | undefined;

/** Takes long strings out of arriving JSON; `texts` maps the placeholders, which start with `mark`. */
export class LongStrings {
  /** The JSON with placeholders. */
  readonly json: Uint8Array[] = [];
  readonly texts = new Map<string, LargeText>();
  readonly #mark: string;
  readonly #keep: KeepLongString;
  readonly #largeBytes: number;
  #inString = false;
  #isEscape = false;
  /** The current string until it is known to be long. */
  #string: Uint8Array[] = [];
  #stringBytes = 0;
  #kept: KeptText | undefined;
  #isAsked = false;
  #takenBytes = 0;

  constructor(mark: string, keep: KeepLongString, largeBytes: number = LARGE_TEXT_BYTES) {
    this.#mark = mark;
    this.#keep = keep;
    this.#largeBytes = largeBytes;
  }

  get takenBytes(): number {
    return this.#takenBytes;
  }

  /** Copies what it keeps. */
  write(piece: Uint8Array): void {
    if (piece.length === 0) return;
    /** Start of the range not yet in `json`, and of the search for the next quotation mark. */
    let [from, at] = [0, 0];
    if (this.#inString) {
      from = this.#throughOpenString(piece);
      at = from + 1;
    }
    while (at < piece.length) {
      const quote = piece.indexOf(QUOTE, at);
      if (quote === -1) break;
      const { end, closed, escape } = throughString(piece, quote + 1, false);
      at = end + 1;
      if (closed && end - quote <= this.#largeBytes) continue;
      this.json.push(piece.slice(from, quote + 1));
      from = end;
      this.#isEscape = escape;
      this.#addToString(piece.subarray(quote + 1, end));
      if (closed) this.#endString();
      else this.#inString = true;
    }
    if (from < piece.length) this.json.push(piece.slice(from));
  }

  /** Returns the end of the string. */
  #throughOpenString(piece: Uint8Array): number {
    const { end, closed, escape } = throughString(piece, 0, this.#isEscape);
    this.#isEscape = escape;
    this.#addToString(piece.subarray(0, end));
    if (closed) this.#endString();
    return end;
  }

  #endString(): void {
    if (this.#kept === undefined) this.json.push(...this.#string);
    else {
      const name = `${this.#mark}${this.texts.size}`;
      this.texts.set(name, new LargeText(this.#kept, this.#stringBytes));
      this.json.push(new TextEncoder().encode(name));
    }
    this.#string = [];
    this.#stringBytes = 0;
    this.#kept = undefined;
    this.#isAsked = false;
    this.#inString = false;
  }

  #addToString(bytes: Uint8Array): void {
    this.#stringBytes += bytes.length;
    if (this.#kept !== undefined) {
      this.#takenBytes += bytes.length;
      this.#kept.add(bytes);
      return;
    }
    this.#string.push(bytes.slice());
    if (this.#stringBytes < this.#largeBytes || this.#isAsked) return;
    this.#isAsked = true;
    this.#kept = this.#keep(this.json);
    if (this.#kept === undefined) return;
    for (const piece of this.#string) this.#kept.add(piece);
    this.#takenBytes += this.#stringBytes;
    this.#string = [];
  }
}

/** Advances to the closing quotation mark or the end of the piece. */
function throughString(
  piece: Uint8Array,
  from: number,
  isEscape: boolean,
): { readonly end: number; readonly closed: boolean; readonly escape: boolean } {
  let at = isEscape ? from + 1 : from;
  for (;;) {
    const quote = piece.indexOf(QUOTE, at);
    const stop = quote === -1 ? piece.length : quote;
    let backslashes = 0;
    while (stop - 1 - backslashes >= at && piece[stop - 1 - backslashes] === BACKSLASH) backslashes += 1;
    const isOdd = backslashes % 2 === 1;
    if (quote === -1) return { end: piece.length, closed: false, escape: isOdd };
    if (!isOdd) return { end: quote, closed: true, escape: false };
    at = quote + 1;
  }
}
