import type { Http2Stream } from "./stream.ts";

/**
 * The streams of a connection that are open. A list in the order of their numbers, as streams begin in it: a map under such
 * use would keep former streams alive (decision 015).
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

  /** Adds one whose number is above all others. */
  add(stream: Http2Stream): void {
    this.#streams.push(stream);
  }

  remove(stream: Http2Stream): void {
    const place = this.#placeOf(stream.id);
    if (this.#streams[place] === stream) this.#streams.splice(place, 1);
  }

  /** Those that are there now, in a list of its own. */
  all(): Http2Stream[] {
    return this.#streams.slice();
  }

  /** Where a stream of this number is, or would be. */
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
