const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const NEWLINE = 10;
const BLOCK_BYTES = 65_536;

/** 0 outside a string, 1 inside, 2 inside after a backslash. */
type State = 0 | 1 | 2;

/**
 * Tells for any byte of a JSON text whether it is inside a string, without reading from the beginning: the state is
 * stored per block. A line break ends a string, since JSON forbids them inside.
 */
export class StringStates {
  readonly #blocks: State[] = [];
  #state: State = 0;
  #length = 0;

  push(chunk: Uint8Array): void {
    for (let index = 0; index < chunk.length; index++) {
      if (this.#length % BLOCK_BYTES === 0) this.#blocks.push(this.#state);
      this.#length++;
      this.#state = step(this.#state, chunk[index] ?? 0);
    }
  }

  /** Whether the byte at `offset` is inside a string. */
  insideAt(bytes: Uint8Array, offset: number): boolean {
    const block = Math.floor(offset / BLOCK_BYTES);
    let state = this.#blocks[block] ?? this.#state;
    for (let at = block * BLOCK_BYTES; at < Math.min(offset, this.#length); at++) state = step(state, bytes[at] ?? 0);
    return state !== 0;
  }
}

function step(state: State, byte: number): State {
  if (byte === NEWLINE) return 0;
  if (state === 2) return 1;
  if (byte === QUOTE) return state === 0 ? 1 : 0;
  return state === 1 && byte === BACKSLASH ? 2 : state;
}
