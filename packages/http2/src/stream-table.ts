import type { Http2Stream } from "./stream.ts";

/**
 * The open streams of a connection, a list ordered by id, as streams are opened in that order. A Map under such use
 * would retain closed streams (decision 015).
 */
export class StreamTable {
  readonly #streams: Http2Stream[] = [];

  get size(): number {
    return this.#streams.length;
  }

  get(id: number): Http2Stream | undefined {
    const stream = this.#streams[this.#placeOf(id)];
    return stream?.id === id ? stream : undefined;
  }

  /** Adds a stream with the highest id so far. */
  add(stream: Http2Stream): void {
    this.#streams.push(stream);
  }

  remove(stream: Http2Stream): void {
    const place = this.#placeOf(stream.id);
    if (this.#streams[place] === stream) this.#streams.splice(place, 1);
  }

  /** A copy of the list. */
  all(): Http2Stream[] {
    return this.#streams.slice();
  }

  /** The index of the stream id, or where it would be inserted. */
  #placeOf(id: number): number {
    let low = 0;
    let high = this.#streams.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#streams[middle]?.id ?? 0) < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
