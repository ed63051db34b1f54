import { LARGE_TEXT_BYTES, LongStrings } from "@headworks/har";
import type { KeptText, LargeText } from "@headworks/har";

/** The document is not what was expected; the message ends with the place. */
export class DocumentError extends Error {
  override readonly name = "DocumentError";

  constructor(message: string, byteOffset: number) {
    super(`${message} (at byte ${byteOffset})`);
  }
}

/** The JSON text of an element. */
export interface ScannedElement {
  readonly bytes: Uint8Array;
  /** Strings that are not in it, by the strings that stand in their places. */
  readonly texts: ReadonlyMap<string, LargeText> | undefined;
}

/** Takes an element and its places: in its array, and in the document. */
export type TakeElement = (element: ScannedElement, index: number, byteOffset: number) => void;

/** What to do with a member of the document's object. */
export interface MemberHandlers {
  /** Members that are arrays: called with each element. */
  readonly elements?: Readonly<Record<string, TakeElement>>;
  /** The members of elements whose long strings are not for memory, by the array, and what keeps such a string. */
  readonly longTexts?: { readonly of: Readonly<Record<string, string>>; readonly keep: () => KeptText };
  /** Called when the array of such a member ends. */
  readonly arrays?: Readonly<Record<string, () => void>>;
  /** Small members: called with the parsed value and its place. */
  readonly values?: Readonly<Record<string, (value: unknown, byteOffset: number) => void>>;
  /** Members whose bytes are passed on as they come; called with undefined at their end. */
  readonly streams?: Readonly<Record<string, (bytes: Uint8Array | undefined, byteOffset: number) => void>>;
  /** Called with the name of each other member, and the place where it ends. */
  readonly unknown?: (name: string, byteOffset: number) => void;
}

type Mode =
  | { readonly kind: "skip" }
  | { readonly kind: "value"; readonly done: (value: unknown, byteOffset: number) => void }
  | { readonly kind: "stream"; readonly take: (bytes: Uint8Array | undefined, byteOffset: number) => void }
  | {
      readonly kind: "elements";
      readonly take: TakeElement;
      readonly done: (() => void) | undefined;
      /** The member of elements whose long strings are kept elsewhere. */
      readonly longMember: string | undefined;
    };

const MAX_KEY_BYTES = 256;
const MAX_VALUE_BYTES = 1_048_576;
/** Without the strings that are kept elsewhere, and with them. */
const MAX_ELEMENT_BYTES = 134_217_728;
const MAX_ELEMENT_WITH_TEXTS_BYTES = 536_870_912;
const DEEPEST = 128;
const [QUOTE, BACKSLASH, COMMA, OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY, COLON] = [
  0x22, 0x5c, 0x2c, 0x7b, 0x7d, 0x5b, 0x5d, 0x3a,
];

/**
 * Takes a JSON object of any size apart while its bytes arrive: finds the ends of its members (and of the elements
 * of one level of arrays) and leaves their inside to `JSON.parse`. Memory holds one element at most, without the long
 * strings that `longTexts` names.
 */
export class MemberScanner {
  readonly #handlers: MemberHandlers;
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** Between members; within a key; between key and value; within a value. */
  #place: "before" | "members" | "key" | "colon" | "value" | "after" = "before";
  #mode: Mode = { kind: "skip" };
  #index = 0;
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  /** Of an element that has become large; its parts go there. */
  #strings: LongStrings | undefined;
  #seenBytes = 0;
  /** Where the current value or element begins in the document. */
  #beginsAt = 0;
  /** The byte that is being looked at. */
  #at = 0;

  constructor(handlers: MemberHandlers) {
    this.#handlers = handlers;
  }

  /** Bytes of all chunks so far. */
  get seenBytes(): number {
    return this.#seenBytes;
  }

  /** A complaint about the byte that is being looked at. */
  #error(message: string): DocumentError {
    return new DocumentError(message, this.#seenBytes + this.#at);
  }

  /** Takes a chunk; it must not be changed before the next one is given. Throws {@link DocumentError}. */
  write(chunk: Uint8Array): void {
    /** Where the part of the current key, value or element begins that is in this chunk; -1 outside. */
    let start = this.#keeps() ? 0 : -1;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (this.#inString) {
        at = this.#throughString(chunk, at);
        if (this.#inString) break;
        if (this.#place === "key") {
          this.#keep(chunk, start, at);
          this.#endKey();
          start = -1;
        }
        continue;
      }
      this.#at = at;
      start = this.#structure(chunk, at, byte, start);
    }
    if (start !== -1) this.#keep(chunk, start, chunk.length);
    this.#seenBytes += chunk.length;
    this.#at = 0;
  }

  /** No more bytes come. Throws {@link DocumentError} when the document is incomplete. */
  end(): void {
    if (this.#place !== "after") {
      throw this.#error(this.#seenBytes === 0 ? "the file is empty" : "the file stops before its end");
    }
  }

  #keeps(): boolean {
    if (this.#place === "key") return true;
    return (
      this.#place === "value" &&
      this.#mode.kind !== "skip" &&
      (this.#mode.kind !== "elements" || this.#partBytes > 0 || this.#parts.length > 0)
    );
  }

  /** Gives the place of the quote that ends the string, or stays in it. */
  #throughString(chunk: Uint8Array, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = true;
      else if (byte === QUOTE) {
        this.#inString = false;
        return at;
      }
    }
    return chunk.length;
  }

  /** One byte outside of strings; gives the new start of what is being kept. */
  #structure(chunk: Uint8Array, at: number, byte: number, start: number): number {
    const isSpace = byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
    switch (this.#place) {
      case "before":
        if (isSpace || byte === 0xef || byte === 0xbb || byte === 0xbf) return -1;
        if (byte !== OPEN_OBJECT) throw this.#error("the document begins with `{`");
        this.#place = "members";
        return -1;
      case "members":
        if (isSpace || byte === COMMA) return -1;
        if (byte === CLOSE_OBJECT) this.#place = "after";
        else if (byte === QUOTE) {
          this.#place = "key";
          this.#inString = true;
          return at + 1;
        } else throw this.#error("a member name is expected");
        return -1;
      case "colon":
        if (isSpace) return -1;
        if (byte !== COLON) throw this.#error("a colon is expected");
        this.#place = "value";
        this.#depth = 0;
        this.#index = 0;
        this.#beginsAt = this.#seenBytes + at + 1;
        return this.#mode.kind === "skip" || this.#mode.kind === "elements" ? -1 : at + 1;
      case "value":
        return this.#inValue(chunk, at, byte, start, isSpace);
      case "after":
        if (!isSpace) throw this.#error("something follows the document");
        return -1;
      case "key":
        return start;
    }
  }

  #inValue(chunk: Uint8Array, at: number, byte: number, start: number, isSpace: boolean): number {
    const isElements = this.#mode.kind === "elements";
    if (this.#depth === 0 && isElements) {
      if (isSpace) return -1;
      // A member of that name with another shape is none that is meant.
      if (byte !== OPEN_ARRAY) this.#mode = { kind: "skip" };
    }
    if (byte === QUOTE) this.#inString = true;
    const isEndOfValue = this.#depth === 0 && (byte === COMMA || byte === CLOSE_OBJECT);
    const isEndOfElement = isElements && this.#depth === 1 && (byte === COMMA || byte === CLOSE_ARRAY);
    if (isEndOfValue || isEndOfElement) {
      if (start !== -1) this.#keep(chunk, start, at);
      if (isEndOfValue) {
        this.#endValue();
        this.#place = byte === COMMA ? "members" : "after";
      } else {
        this.#endElement();
        if (byte === CLOSE_ARRAY) {
          this.#depth -= 1;
          if (this.#mode.kind === "elements") this.#mode.done?.();
        }
      }
      return -1;
    }
    const startsElement = isElements && this.#depth === 1 && start === -1 && !isSpace;
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      this.#depth += 1;
      if (this.#depth > DEEPEST) throw this.#error("the document is nested too deeply");
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) this.#depth -= 1;
    if (!startsElement) return start;
    this.#beginsAt = this.#seenBytes + at;
    return at;
  }

  #keep(chunk: Uint8Array, start: number, end: number): void {
    if (end <= start) return;
    const bytes = chunk.subarray(start, end);
    if (this.#place === "value" && this.#mode.kind === "stream") return this.#mode.take(bytes, this.#beginsAt);
    this.#partBytes += bytes.length;
    if (this.#place === "value" && this.#mode.kind === "elements") return this.#keepOfElement(bytes, this.#mode);
    const most = this.#place === "key" ? MAX_KEY_BYTES : MAX_VALUE_BYTES;
    if (this.#partBytes > most) throw this.#error("a member is too large");
    this.#parts.push(bytes.slice());
  }

  #keepOfElement(bytes: Uint8Array, { longMember }: Mode & { kind: "elements" }): void {
    if (this.#strings !== undefined) this.#strings.write(bytes);
    else this.#parts.push(bytes.slice());
    const { longTexts } = this.#handlers;
    if (longTexts !== undefined && longMember !== undefined && this.#partBytes >= LARGE_TEXT_BYTES) {
      this.#strings ??= this.#withoutLongStrings(longMember, longTexts.keep);
    }
    const inMemoryBytes = this.#partBytes - (this.#strings?.takenBytes ?? 0);
    if (inMemoryBytes > MAX_ELEMENT_BYTES || this.#partBytes > MAX_ELEMENT_WITH_TEXTS_BYTES) {
      throw this.#error("a member is too large");
    }
  }

  #withoutLongStrings(member: string, keep: () => KeptText): LongStrings {
    // No document can know the mark, and so none can hold a string that looks like one that was taken out.
    const strings = new LongStrings(crypto.randomUUID(), (json) => (endsWithMember(json, member) ? keep() : undefined));
    for (const part of this.#parts) strings.write(part);
    this.#parts = [];
    return strings;
  }

  #take(): Uint8Array {
    const [only] = this.#parts;
    const bytes = this.#parts.length === 1 && only !== undefined ? only : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#partBytes = 0;
    return bytes;
  }

  #endKey(): void {
    const written = Buffer.concat([QUOTATION_MARK, this.#take(), QUOTATION_MARK]);
    const key = parseJson(written, this.#seenBytes + this.#at);
    this.#mode = typeof key === "string" ? this.#modeOf(key) : { kind: "skip" };
    this.#place = "colon";
  }

  #modeOf(key: string): Mode {
    const { elements, values, streams } = this.#handlers;
    const element = elements !== undefined && Object.hasOwn(elements, key) ? elements[key] : undefined;
    if (element !== undefined) {
      const { arrays, longTexts } = this.#handlers;
      return { kind: "elements", take: element, done: arrays?.[key], longMember: longTexts?.of[key] };
    }
    const value = values !== undefined && Object.hasOwn(values, key) ? values[key] : undefined;
    if (value !== undefined) return { kind: "value", done: value };
    const stream = streams !== undefined && Object.hasOwn(streams, key) ? streams[key] : undefined;
    if (stream !== undefined) return { kind: "stream", take: stream };
    this.#handlers.unknown?.(key, this.#seenBytes + this.#at);
    return { kind: "skip" };
  }

  #endValue(): void {
    if (this.#mode.kind === "value") this.#mode.done(parseJson(this.#take(), this.#beginsAt), this.#beginsAt);
    else if (this.#mode.kind === "stream") this.#mode.take(undefined, this.#beginsAt);
  }

  #endElement(): void {
    if (this.#mode.kind !== "elements" || this.#partBytes === 0) return;
    const texts = this.#strings?.texts;
    if (this.#strings !== undefined) this.#parts = this.#strings.json;
    this.#strings = undefined;
    this.#mode.take({ bytes: this.#take(), texts }, this.#index, this.#beginsAt);
    this.#index += 1;
  }
}

/** A member's name, the colon and the quotation mark of its value fit in there, with some white space. */
const MAX_BEGINNING_BYTES = 256;

/** Whether JSON text stops where the text of a member with that name has just begun. */
function endsWithMember(json: readonly Uint8Array[], name: string): boolean {
  const end: Uint8Array[] = [];
  for (let index = json.length - 1, bytes = 0; index >= 0 && bytes < MAX_BEGINNING_BYTES; index -= 1) {
    const part = json[index]?.subarray(-MAX_BEGINNING_BYTES) ?? NOTHING;
    end.unshift(part);
    bytes += part.length;
  }
  const text = Buffer.concat(end).toString("latin1").trimEnd();
  if (!text.endsWith('"')) return false;
  const before = text.slice(0, -1).trimEnd();
  return before.endsWith(":") && before.slice(0, -1).trimEnd().endsWith(`"${name}"`);
}

const NOTHING = new Uint8Array(0);

const QUOTATION_MARK = Uint8Array.of(QUOTE);

/** An element's value; the strings that are not in its JSON text are the `LargeText`s. Throws {@link DocumentError}. */
export function parseElement({ bytes, texts }: ScannedElement, byteOffset: number): unknown {
  if (texts === undefined || texts.size === 0) return parseJson(bytes, byteOffset);
  return parseJson(bytes, byteOffset, (_key, value) =>
    typeof value === "string" ? (texts.get(value) ?? value) : value,
  );
}

/** The engine's own message is left out: it quotes the text around the fault. Throws {@link DocumentError}. */
function parseJson(bytes: Uint8Array, byteOffset: number, reviver?: (key: string, value: unknown) => unknown): unknown {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new DocumentError("this is not valid UTF-8", byteOffset);
  }
  try {
    return JSON.parse(text, reviver);
  } catch {
    throw new DocumentError("this is not JSON", byteOffset);
  }
}
