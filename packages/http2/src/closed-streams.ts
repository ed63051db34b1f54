/**
 * How a closed stream ended for its peer. `ended`: the peer sent END_STREAM. `reset`: the peer reset it. `left`: we
 * ended it, and the peer may not know yet. `unknown`: no longer remembered.
 */
export type Ending = "ended" | "reset" | "left" | "unknown";

const ENDINGS: readonly Ending[] = ["unknown", "ended", "reset", "left"];
/** Number of endings remembered; a peer does not return to older streams by mistake. */
const MAX_ENDINGS = 128;
/** Number of skipped id ranges remembered; further skipped ids count as used. */
const MAX_GAPS = 32;

/** The closed streams of a connection, as far as needed to judge late frames (RFC 9113, 5.1). */
export class ClosedStreams {
  #ids: Uint32Array | undefined;
  #endings: Uint8Array | undefined;
  #next = 0;
  /** First and last id of each gap. */
  readonly #gaps: number[] = [];

  note(id: number, ending: Exclude<Ending, "unknown">): void {
    this.#ids ??= new Uint32Array(MAX_ENDINGS);
    this.#endings ??= new Uint8Array(MAX_ENDINGS);
    this.#ids[this.#next] = id;
    this.#endings[this.#next] = ENDINGS.indexOf(ending);
    this.#next = (this.#next + 1) % MAX_ENDINGS;
  }

  endingOf(id: number): Ending {
    const at = this.#ids?.lastIndexOf(id) ?? -1;
    return ENDINGS[this.#endings?.[at] ?? 0] ?? "unknown";
  }

  /** A client opened stream `id` after stream `last`: the ids between are skipped and can no longer be used (5.1.1). */
  began(id: number, last: number): void {
    if (id <= last + 2 || id === 1 || this.#gaps.length >= 2 * MAX_GAPS) return;
    this.#gaps.push(last + 1, id - 1);
  }

  /** Whether the stream id was skipped. */
  wasLeftOut(id: number): boolean {
    for (let at = 0; at < this.#gaps.length; at += 2) {
      if (id >= (this.#gaps[at] ?? 0) && id <= (this.#gaps[at + 1] ?? 0)) return true;
    }
    return false;
  }
}
