/** A growing byte buffer with a limit. Excess bytes are dropped and {@link ByteStore.full} is set. */
export class ByteStore {
  readonly limitBytes: number;
  #bytes: Uint8Array<ArrayBuffer>;
  #length = 0;
  #full = false;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
    this.#bytes = new Uint8Array(Math.min(limitBytes, 65_536));
  }

  get length(): number {
    return this.#length;
  }

  get full(): boolean {
    return this.#full;
  }

  append(chunk: Uint8Array): void {
    const room = this.limitBytes - this.#length;
    if (chunk.length > room) this.#full = true;
    const part = chunk.length > room ? chunk.subarray(0, room) : chunk;
    this.#reserve(this.#length + part.length);
    this.#bytes.set(part, this.#length);
    this.#length += part.length;
  }

  /** A view of `[start, end)`, valid until the next append. */
  view(start = 0, end = this.#length): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(Math.min(start, this.#length), Math.min(end, this.#length));
  }

  #reserve(needed: number): void {
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.min(this.limitBytes, Math.max(needed, this.#bytes.length * 2)));
    grown.set(this.view());
    this.#bytes = grown;
  }
}

/** A growing list of unsigned 32-bit integers; uses a tenth of the memory of an array. */
export class NumberList {
  #values = new Uint32Array(1024);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const grown = new Uint32Array(this.#values.length * 2);
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.#length++] = value;
  }

  /** The number at `index`; 0 outside the list. */
  at(index: number): number {
    return index < this.#length ? (this.#values[index] ?? 0) : 0;
  }

  set(index: number, value: number): void {
    if (index < this.#length) this.#values[index] = value;
  }

  clear(): void {
    this.#length = 0;
  }

  /** The last index whose number is at most `value`, in an ascending list; -1 if none. */
  floorIndex(value: number): number {
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.at(middle) <= value) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
