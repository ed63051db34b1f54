import { LARGE_TEXT_BYTES, LongStrings } from "@headworks/har";
import type { KeptText, LargeText } from "@headworks/har";

/** An invalid document; the message ends with the position. */
export class DocumentError extends Error {
  override readonly name = "DocumentError";

  constructor(message: string, byteOffset: number) {
    super(`${message} (at byte ${byteOffset})`);
  }
}

/** JSON of an element. */
export interface ScannedElement {
  readonly bytes: Uint8Array;
  /** Long strings taken out of the JSON, by their placeholders. */
  readonly texts: ReadonlyMap<string, LargeText> | undefined;
}

/** Receives an element with its index and its byte offset. */
export type TakeElement = (element: ScannedElement, index: number, byteOffset: number) => void;

/** Handlers for the members of the root object. */
export interface MemberHandlers {
  /** Array members: called for each element. */
  readonly elements?: Readonly<Record<string, TakeElement>>;
  /** By array: the element member whose long strings are kept outside of memory, and how. */
  readonly longTexts?: { readonly of: Readonly<Record<string, string>>; readonly keep: () => KeptText };
  /** Called at the end of the array. */
  readonly arrays?: Readonly<Record<string, () => void>>;
  /** Small members: called with the parsed value. */
  readonly values?: Readonly<Record<string, (value: unknown, byteOffset: number) => void>>;
  /** Members passed on as raw bytes; undefined marks the end. */
  readonly streams?: Readonly<Record<string, (bytes: Uint8Array | undefined, byteOffset: number) => void>>;
  /** Other members: called with the name and the end offset. */
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
      /** The element member whose long strings are kept elsewhere. */
      readonly longMember: string | undefined;
    };

const MAX_KEY_BYTES = 256;
const MAX_VALUE_BYTES = 1_048_576;
/** Limit of an element in memory, and in total with its long strings. */
const MAX_ELEMENT_BYTES = 134_217_728;
const MAX_ELEMENT_WITH_TEXTS_BYTES = 536_870_912;
const MAX_DEPTH = 128;
const [QUOTE, BACKSLASH, COMMA, OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY, COLON] = [
  0x22, 0x5c, 0x2c, 0x7b, 0x7d, 0x5b, 0x5d, 0x3a,
];

/**
 * Splits a JSON object of any size into members (and elements of one level of arrays) while its bytes arrive; the
 * values are parsed by `JSON.parse`. Memory holds at most one element, without the strings that `longTexts` names.
 */
export class MemberScanner {
  readonly #handlers: MemberHandlers;
  #depth = 0;
  #inString = false;
  #escaped = false;
  #state: "before" | "members" | "key" | "colon" | "value" | "after" = "before";
  #mode: Mode = { kind: "skip" };
  #index = 0;
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  /** Holds the parts of a large element. */
  #strings: LongStrings | undefined;
  seenBytes = 0;
  /** Byte offset of the current value or element. */
  #beginsAt = 0;
  /** Offset of the current byte. */
  #at = 0;

  constructor(handlers: MemberHandlers) {
    this.#handlers = handlers;
  }

  #error(message: string): DocumentError {
    return new DocumentError(message, this.seenBytes + this.#at);
  }

  /** The chunk must not change before the next call. Throws {@link DocumentError}. */
  write(chunk: Uint8Array): void {
    /** Start of the current key, value or element within the chunk; -1 outside. */
    let start = this.#keeps() ? 0 : -1;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (this.#inString) {
        at = this.#throughString(chunk, at);
        if (this.#inString) break;
        if (this.#state === "key") {
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
    this.seenBytes += chunk.length;
    this.#at = 0;
  }

  /** Throws {@link DocumentError} if the document is incomplete. */
  end(): void {
    if (this.#state !== "after") {
      throw this.#error(this.seenBytes === 0 ? "the file is empty" : "the file stops before its end");
    }
  }

  #keeps(): boolean {
    if (this.#state === "key") return true;
    return (
      this.#state === "value" &&
      this.#mode.kind !== "skip" &&
      (this.#mode.kind !== "elements" || this.#partBytes > 0 || this.#parts.length > 0)
    );
  }

  /** Returns the index of the closing quote and ends the string, or stays in it. */
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

  /** Handles one byte outside of strings; returns the new start of the retained range. */
  #structure(chunk: Uint8Array, at: number, byte: number, start: number): number {
    const isSpace = byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
    switch (this.#state) {
      case "before":
        if (isSpace || byte === 0xef || byte === 0xbb || byte === 0xbf) return -1;
        if (byte !== OPEN_OBJECT) throw this.#error("the document must begin with `{`");
        this.#state = "members";
        return -1;
      case "members":
        if (isSpace || byte === COMMA) return -1;
        if (byte === CLOSE_OBJECT) this.#state = "after";
        else if (byte === QUOTE) {
          this.#state = "key";
          this.#inString = true;
          return at + 1;
        } else throw this.#error("a member name is expected");
        return -1;
      case "colon":
        if (isSpace) return -1;
        if (byte !== COLON) throw this.#error("a colon is expected");
        this.#state = "value";
        this.#depth = 0;
        this.#index = 0;
        this.#beginsAt = this.seenBytes + at + 1;
        return this.#mode.kind === "skip" || this.#mode.kind === "elements" ? -1 : at + 1;
      case "value":
        return this.#inValue(chunk, at, byte, start, isSpace);
      case "after":
        if (!isSpace) throw this.#error("there is content after the document");
        return -1;
      case "key":
        return start;
    }
  }

  #inValue(chunk: Uint8Array, at: number, byte: number, start: number, isSpace: boolean): number {
    const isElements = this.#mode.kind === "elements";
    if (this.#depth === 0 && isElements) {
      if (isSpace) return -1;
      // A member of another shape is not the expected one.
      if (byte !== OPEN_ARRAY) this.#mode = { kind: "skip" };
    }
    if (byte === QUOTE) this.#inString = true;
    const isEndOfValue = this.#depth === 0 && (byte === COMMA || byte === CLOSE_OBJECT);
    const isEndOfElement = isElements && this.#depth === 1 && (byte === COMMA || byte === CLOSE_ARRAY);
    if (isEndOfValue || isEndOfElement) {
      if (start !== -1) this.#keep(chunk, start, at);
      if (isEndOfValue) {
        this.#endValue();
        this.#state = byte === COMMA ? "members" : "after";
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
      if (this.#depth > MAX_DEPTH) throw this.#error("the document is nested too deeply");
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) this.#depth -= 1;
    if (!startsElement) return start;
    this.#beginsAt = this.seenBytes + at;
    return at;
  }

  #keep(chunk: Uint8Array, start: number, end: number): void {
    if (end <= start) return;
    const bytes = chunk.subarray(start, end);
    if (this.#state === "value" && this.#mode.kind === "stream") return this.#mode.take(bytes, this.#beginsAt);
    this.#partBytes += bytes.length;
    if (this.#state === "value" && this.#mode.kind === "elements") return this.#keepOfElement(bytes, this.#mode);
    const maxBytes = this.#state === "key" ? MAX_KEY_BYTES : MAX_VALUE_BYTES;
    if (this.#partBytes > maxBytes) throw this.#error("a member is too large");
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
    // The random mark cannot occur in the document, so placeholders are unambiguous.
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
    const key = parseJson(written, this.seenBytes + this.#at);
    this.#mode = typeof key === "string" ? this.#modeOf(key) : { kind: "skip" };
    this.#state = "colon";
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
    this.#handlers.unknown?.(key, this.seenBytes + this.#at);
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

/** Room for the name, colon, opening quote and some white space. */
const MAX_BEGINNING_BYTES = 256;

/** Whether the JSON ends where the string value of this member starts. */
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

/** Parses an element; strings taken out are `LargeText`s. Throws {@link DocumentError}. */
export function parseElement({ bytes, texts }: ScannedElement, byteOffset: number): unknown {
  if (texts === undefined || texts.size === 0) return parseJson(bytes, byteOffset);
  return parseJson(bytes, byteOffset, (_key, value) =>
    typeof value === "string" ? (texts.get(value) ?? value) : value,
  );
}

/** Omits the engine's message, which quotes the document. Throws {@link DocumentError}. */
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
