/** Which line is dropped when the buffer is full. */
export type OverflowRule = "drop_newest" | "drop_oldest";

/** Maximum buffered bytes. */
const MAX_BYTES = 16_777_216;

/** A buffer of lines, bounded in number and bytes. */
export class WaitingLines {
  maxLines: number;
  rule: OverflowRule;
  /** Maximum number of lines buffered so far. */
  highWater = 0;
  /** Lines dropped so far. */
  dropped = 0;
  #lines: Buffer[] = [];
  #head = 0;
  #bytes = 0;

  constructor(maxLines: number, rule: OverflowRule) {
    this.maxLines = maxLines;
    this.rule = rule;
  }

  get length(): number {
    return this.#lines.length - this.#head;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** May drop lines as the overflow rule says; a single line always fits. */
  add(line: Buffer): void {
    while (this.length > 0 && (this.length >= this.maxLines || this.#bytes + line.length > MAX_BYTES)) {
      this.dropped += 1;
      if (this.rule === "drop_newest") return;
      this.#shift();
    }
    this.#lines.push(line);
    this.#bytes += line.length;
    this.highWater = Math.max(this.highWater, this.length);
  }

  /** Undefined if empty. */
  get nextBytes(): number | undefined {
    return this.#lines[this.#head]?.length;
  }

  /** Removes at least one line, and more up to `maxBytes` in all. */
  take(maxBytes: number): { readonly bytes: Buffer; readonly lines: number } {
    const taken: Buffer[] = [];
    let size = 0;
    for (let next = this.nextBytes; next !== undefined; next = this.nextBytes) {
      if (taken.length > 0 && size + next > maxBytes) break;
      size += next;
      taken.push(this.#shift());
    }
    return { bytes: taken.length === 1 && taken[0] ? taken[0] : Buffer.concat(taken), lines: taken.length };
  }

  dropAll(): void {
    this.dropped += this.length;
    this.#lines = [];
    this.#head = 0;
    this.#bytes = 0;
  }

  #shift(): Buffer {
    const line = this.#lines[this.#head] ?? Buffer.alloc(0);
    this.#head += 1;
    this.#bytes -= line.length;
    if (this.#head > 1024 && this.#head * 2 > this.#lines.length) {
      this.#lines = this.#lines.slice(this.#head);
      this.#head = 0;
    }
    return line;
  }
}
