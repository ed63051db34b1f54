import { closeText } from "@headworks/websocket";
import type { FrameEvent, ServerMessage } from "@headworks/capture-contract";
import type { Clock } from "#slice.ts";
import type { FrameListener, FrameRecord } from "#storage/streams/stream-store.ts";
import { type EventClient, textFrames } from "./event-client.ts";

/** Twenty flushes a second, as for traffic. */
const FLUSH_MS = 50;
/** Frames of one flush; a screen shows a few dozen, and the rest can be read from the store. */
const MAX_FRAMES = 4000;
/** Bytes of payload that wait for one flush: they are held in memory until then. */
const MAX_BYTES = 16_777_216;
const SHOWN_CHARACTERS = 1000;
/** A character takes at most four bytes. */
const SHOWN_BYTES = SHOWN_CHARACTERS * 4;

/** Tells live clients of the frames of streams, to those who asked for them and as fast as they take them. */
export class FrameFeed {
  readonly #clock: Clock;
  readonly #clients: ReadonlySet<EventClient>;
  #queue: Parameters<FrameListener>[] = [];
  #queuedBytes = 0;
  #missed = 0;
  #isArmed = false;
  #isWatched = false;

  constructor(clock: Clock, clients: ReadonlySet<EventClient>) {
    this.#clock = clock;
    this.#clients = clients;
  }

  /** Clients came, went, or asked for something else. */
  countListeners(): void {
    this.#isWatched = [...this.#clients].some((client) => client.channels.has("frames"));
    if (!this.#isWatched) this.#take();
  }

  /** Runs for every frame on the proxy thread: it must do no more than append. */
  readonly add: FrameListener = (stream, ordinal, frame) => {
    if (!this.#isWatched) return;
    if (!this.#isArmed) {
      this.#isArmed = true;
      this.#clock.after(FLUSH_MS, () => this.#flush());
    }
    if (this.#queue.length >= MAX_FRAMES || this.#queuedBytes >= MAX_BYTES) {
      this.#missed += 1;
      return;
    }
    this.#queue.push([stream, ordinal, frame]);
    this.#queuedBytes += frame.payload.length;
  };

  #take(): { readonly frames: Parameters<FrameListener>[]; readonly missed: number } {
    const taken = { frames: this.#queue, missed: this.#missed };
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#missed = 0;
    return taken;
  }

  #flush(): void {
    this.#isArmed = false;
    const { frames, missed } = this.#take();
    if (frames.length === 0) return;
    const texts = frames.map(([stream, ordinal, frame]) => JSON.stringify(messageOf(stream, ordinal, frame)));
    let separate: Buffer | undefined;
    let batch: Buffer | undefined;
    for (const client of this.#clients) {
      if (!client.channels.has("frames")) continue;
      client.deliverFrames(
        client.isBatched ? (batch ??= textFrames([`[${texts.join(",")}]`])) : (separate ??= textFrames(texts)),
        frames.length,
        missed,
      );
    }
  }
}

function messageOf(
  stream: { id: string; kind: FrameEvent["kind"] },
  ordinal: number,
  frame: FrameRecord,
): ServerMessage {
  return {
    type: "Frame",
    data: {
      stream_id: stream.id,
      ordinal,
      kind: stream.kind,
      direction: frame.direction,
      type: frame.type,
      size: frame.sizeBytes,
      text: shownText(frame),
      timestamp: new Date(frame.atMs).toISOString(),
      ...(frame.effect === undefined ? {} : { effect: frame.effect }),
      ...(frame.attributes === undefined ? {} : { attributes: frame.attributes }),
    },
  };
}

/** null: the payload is not for reading. */
function shownText(frame: FrameRecord): string | null {
  if (frame.type === "close") return closeText(frame.payload);
  if (frame.type === "binary" || frame.type === "message") return null;
  return frame.payload.toString("utf8", 0, SHOWN_BYTES).slice(0, SHOWN_CHARACTERS);
}
