/**
 * How a stream that is over ended for its peer. `ended`: the peer said its end. `reset`: the peer reset it. `left`: we ended
 * it, and the peer may not know yet. `unknown`: it is over for longer than is remembered.
 */
export type Ending = "ended" | "reset" | "left" | "unknown";

const ENDINGS: readonly Ending[] = ["unknown", "ended", "reset", "left"];
/** Streams that ended last; a peer does not come back to older ones by mistake. */
const MAX_ENDINGS = 128;
/** Ranges of numbers that a client left out; it may leave out more, which then count as used. */
const MAX_GAPS = 32;

/** The streams of a connection that are over, as far as frames that still come for them have to be judged (RFC 9113, 5.1). */
export class ClosedStreams {
  #ids: Uint32Array | undefined;
  #endings: Uint8Array | undefined;
  #next = 0;
  /** First and last number of each gap. */
  readonly #gaps: number[] = [];

  /** A stream is over. */
  note(id: number, ending: Exclude<Ending, "unknown">): void {
    this.#ids ??= new Uint32Array(MAX_ENDINGS);
    this.#endings ??= new Uint8Array(MAX_ENDINGS);
    this.#ids[this.#next] = id;
    this.#endings[this.#next] = ENDINGS.indexOf(ending);
    this.#next = (this.#next + 1) % MAX_ENDINGS;
  }

  /** How a stream ended that is over. */
  endingOf(id: number): Ending {
    const at = this.#ids?.lastIndexOf(id) ?? -1;
    return ENDINGS[this.#endings?.[at] ?? 0] ?? "unknown";
  }

  /** A client began stream `id` behind stream `last`: those between were never used, and cannot be any more (5.1.1). */
  began(id: number, last: number): void {
    if (id <= last + 2 || id === 1 || this.#gaps.length >= 2 * MAX_GAPS) return;
    this.#gaps.push(last + 1, id - 1);
  }

  /** Whether a stream of that number was never begun. */
  wasLeftOut(id: number): boolean {
    for (let at = 0; at < this.#gaps.length; at += 2) {
      if (id >= (this.#gaps[at] ?? 0) && id <= (this.#gaps[at + 1] ?? 0)) return true;
    }
    return false;
  }
}
