const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Byte-wise scanning up to this length; beyond it the engine's search is faster. */
const SHORT_STRING = 24;

/**
 * Finds the end of a JSON value in one pass, looking only at strings, escapes and brackets. Values may span chunks.
 * `JSON.parse` validates the content.
 */
export class ValueScanner {
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
