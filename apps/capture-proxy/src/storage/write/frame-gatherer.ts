import { STREAMS_OF_AN_IMPORT } from "../import/import-messages.ts";
import type { ImportedFrame, ImportedStream } from "../import/imported-stream.ts";
import { MemberError } from "../import/checked-members.ts";
import type { FrameBatch, FrameTuple, StreamOpening, StreamProgress } from "../streams/stream-message.ts";

const BATCH_FRAMES = 1024;
const BATCH_BYTES = 4_194_304;

/** Batches the streams and frames of an imported document. */
export class FrameGatherer {
  readonly #firstStream: number;
  readonly #session: number;
  readonly #post: (batch: FrameBatch) => void;
  readonly #progress: StreamProgress[] = [];
  #openings: StreamOpening[] = [];
  readonly #touched = new Set<number>();
  #frames: FrameTuple[] = [];
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(firstStream: number, session: number, post: (batch: FrameBatch) => void) {
    this.#firstStream = firstStream;
    this.#session = session;
    this.#post = post;
  }

  /** Returns the stream's index in the document. */
  stream({ opening, progress }: ImportedStream): number {
    const place = this.#progress.length;
    if (place === STREAMS_OF_AN_IMPORT) throw new MemberError("the document has too many streams");
    const number = this.#firstStream + place;
    this.#openings.push({ ...opening, number, session: this.#session });
    this.#progress.push({ ...progress, number });
    this.#touched.add(place);
    return place;
  }

  frame({ stream, tuple, payload, original }: ImportedFrame): void {
    if (stream >= this.#progress.length) throw new MemberError("`stream` is the place of no stream before it");
    this.#touched.add(stream);
    const [, ...rest] = tuple;
    this.#frames.push([this.#firstStream + stream, ...rest]);
    for (const piece of [payload, original]) {
      if (piece === undefined) continue;
      this.#pieces.push(piece);
      this.#bytes += piece.length;
    }
    if (this.#frames.length >= BATCH_FRAMES || this.#bytes >= BATCH_BYTES) this.flush();
  }

  flush(): void {
    if (this.#touched.size === 0) return;
    const joined = Buffer.concat(this.#pieces);
    const payloads = new ArrayBuffer(joined.length);
    new Uint8Array(payloads).set(joined);
    const progress = [...this.#touched].flatMap((place) => this.#progress[place] ?? []);
    const text = JSON.stringify({ openings: this.#openings, progress, frames: this.#frames });
    const bytes = text.length + joined.length;
    this.#post({ kind: "frames", frames: this.#frames.length, bytes, text, payloads, isImported: true });
    this.#openings = [];
    this.#touched.clear();
    this.#frames = [];
    this.#pieces = [];
    this.#bytes = 0;
  }
}
