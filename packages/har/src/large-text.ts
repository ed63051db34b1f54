// Tested by large-text.test.ts
/** Strings of a document from this size on are kept as bytes: as strings they would be in memory several times. */
export const LARGE_TEXT_BYTES = 4_194_304;

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const NOTHING = new Uint8Array(0);

/** A long string of a JSON document, still as the bytes between its quotation marks. It can be read once. */
export class LargeText {
  readonly #pieces: Uint8Array[];
  readonly #sizeBytes: number;

  constructor(pieces: Uint8Array[]) {
    this.#pieces = pieces;
    this.#sizeBytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  }

  /**
   * What the string says in UTF-8, or the bytes that it says in base64, where characters that are not base64 are passed
   * over. The pieces are given up on the way. Throws a sentence when it is not a JSON string or not UTF-8.
   */
  toBytes(isBase64: boolean): Uint8Array {
    // No escape is shorter than what it stands for.
    const bytes = Buffer.allocUnsafeSlow(isBase64 ? Math.ceil(this.#sizeBytes / 4) * 3 : this.#sizeBytes);
    let length = 0;
    let open = "";
    for (const text of this.#texts()) {
      if (!isBase64) length += bytes.write(text, length, "utf8");
      else {
        const known = open + text.replaceAll(/[^A-Za-z0-9+/_-]+/gu, "");
        const whole = known.length - (known.length % 4);
        length += bytes.write(known.slice(0, whole), length, "base64");
        open = known.slice(whole);
      }
    }
    length += bytes.write(open, length, "base64");
    return new Uint8Array(bytes.buffer, 0, length);
  }

  /** The string in parts; no character is divided. */
  *#texts(): Generator<string> {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    let open = "";
    for (const [index, piece] of this.#pieces.entries()) {
      this.#pieces[index] = NOTHING;
      const text = open + utf8(decoder, piece, true);
      const end = endOfWhole(text);
      open = text.slice(end);
      yield jsonString(text.slice(0, end));
    }
    yield jsonString(open + utf8(decoder, NOTHING, false));
  }
}

/** The engine's own errors are replaced: they quote the text around the fault, which may hold a secret. */
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

/** Where the last escapes of a part of a string begin, since they may go on in the next part. */
function endOfWhole(text: string): number {
  for (let at = Math.max(0, text.length - 12); at < text.length; at += 1) {
    if (text.charCodeAt(at) !== BACKSLASH) continue;
    let first = at;
    while (first > 0 && text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
    // The second of two backslashes begins nothing.
    const begin = (at - first) % 2 === 0 ? at : at - 1;
    // The first half of a pair of escapes must not be read alone.
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

/**
 * Takes the long strings out of JSON text that stands in pieces. Each is replaced by a string that only `mark` begins;
 * `texts` tells them by it. What is taken out shares memory with the pieces.
 */
export function withoutLargeTexts(
  pieces: readonly Uint8Array[],
  mark: string,
  largeBytes: number = LARGE_TEXT_BYTES,
): { readonly json: Uint8Array[]; readonly texts: ReadonlyMap<string, LargeText> } {
  const json: Uint8Array[] = [];
  const texts = new Map<string, LargeText>();
  let inString = false;
  let isEscape = false;
  let string: Uint8Array[] = [];
  let stringBytes = 0;
  const endString = (): void => {
    if (stringBytes < largeBytes) json.push(...string);
    else {
      const name = `${mark}${texts.size}`;
      texts.set(name, new LargeText(string));
      json.push(new TextEncoder().encode(name));
    }
    string = [];
    stringBytes = 0;
  };
  for (const piece of pieces) {
    let from = 0;
    for (let at = 0; at < piece.length;) {
      if (!inString) {
        const quote = piece.indexOf(QUOTE, at);
        at = quote === -1 ? piece.length : quote + 1;
        json.push(piece.subarray(from, at));
        from = at;
        inString = quote !== -1;
        continue;
      }
      const { end, closed, escape } = throughString(piece, at, isEscape);
      isEscape = escape;
      string.push(piece.subarray(from, end));
      stringBytes += end - from;
      from = end;
      at = end;
      if (!closed) continue;
      endString();
      inString = false;
      // The quotation mark that ends the string.
      json.push(piece.subarray(end, end + 1));
      at = end + 1;
      from = at;
    }
  }
  if (inString) endString();
  return { json, texts };
}

/** Goes to the quotation mark that ends a string, or to the end of the piece. */
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
