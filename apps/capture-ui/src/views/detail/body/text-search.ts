export interface SearchQuery {
  readonly text: string;
  readonly regex: boolean;
  readonly matchCase: boolean;
}

/** `[start, end)` in bytes. */
export interface SearchMatch {
  readonly start: number;
  readonly end: number;
}

export interface SearchResult {
  readonly matches: readonly SearchMatch[];
  /** Whether more matches exist than were collected. */
  readonly more: boolean;
}

export const MAX_MATCHES = 10_000;
/** Text is searched in windows of about this size; a match longer than the overlap may be missed at an edge. */
const WINDOW_BYTES = 1 << 20;
const OVERLAP_BYTES = 1 << 14;
const NEWLINE = 10;

/** The pattern of a query; throws SyntaxError with the engine's message for an invalid expression. */
function searchPattern(query: SearchQuery): RegExp {
  const source = query.regex ? query.text : query.text.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, String.raw`\$&`);
  return new RegExp(source, query.matchCase ? "gmu" : "gimu");
}

/** Finds a query in UTF-8 text. Empty matches are ignored. */
export function searchBytes(bytes: Uint8Array, query: SearchQuery): SearchResult {
  const matches: SearchMatch[] = [];
  if (query.text === "") return { matches, more: false };
  const pattern = searchPattern(query);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let from = 0;
  /** End of the last match: the overlap must not find it again. */
  let reached = 0;
  while (from < bytes.length) {
    const to = windowEnd(bytes, from);
    const text = decoder.decode(bytes.subarray(from, to));
    const offsets = new ByteOffsets(text, from);
    for (const match of text.matchAll(pattern)) {
      if (match[0] === "") continue;
      const start = offsets.at(match.index);
      if (start < reached) continue;
      if (matches.length >= MAX_MATCHES) return { matches, more: true };
      const end = offsets.at(match.index + match[0].length);
      matches.push({ start, end });
      reached = end;
    }
    if (to >= bytes.length) break;
    from = characterStart(bytes, bytes[to - 1] === NEWLINE ? to : to - OVERLAP_BYTES);
  }
  return { matches, more: false };
}

/** A line end near the window's end if there is one, otherwise a character boundary. */
function windowEnd(bytes: Uint8Array, from: number): number {
  const wanted = from + WINDOW_BYTES;
  if (wanted >= bytes.length) return bytes.length;
  const newline = bytes.lastIndexOf(NEWLINE, wanted);
  return newline > from + WINDOW_BYTES / 2 ? newline + 1 : characterStart(bytes, wanted);
}

function characterStart(bytes: Uint8Array, offset: number): number {
  let at = offset;
  while (at > 0 && offset - at < 4 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at--;
  return at;
}

/** Converts ascending string positions to byte offsets in one pass. */
class ByteOffsets {
  readonly #text: string;
  #position = 0;
  #offset: number;

  constructor(text: string, base: number) {
    this.#text = text;
    this.#offset = base;
  }

  at(position: number): number {
    if (position < this.#position) throw new RangeError("Positions must ascend");
    while (this.#position < position) {
      const unit = this.#text.charCodeAt(this.#position++);
      if (unit < 0x80) this.#offset += 1;
      else if (unit < 0x800) this.#offset += 2;
      // Each half of a surrogate pair accounts for two of its four bytes.
      else this.#offset += unit >= 0xd800 && unit <= 0xdfff ? 2 : 3;
    }
    return this.#offset;
  }
}
