import { Buffer } from "node:buffer";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import { decodeText, isTextual } from "@headworks/http-fields";
import { createContentDecoder } from "@headworks/http-fields/content-coding";
import type { BodyWatcher } from "#exchange/body.ts";

export interface TrafficEvent {
  readonly facts: Readonly<Record<string, unknown>>;
  readonly message: string;
  /** The body's size, type and text follow the message. */
  readonly body?: PendingBody | undefined;
}

export interface PendingBody {
  readonly watched: WatchedBody;
  readonly input: Omit<BodyInput, "pieces" | "sizeBytes" | "isCut">;
}

const MAX_WAITING = 4096;
/** Events processed before yielding to other work. */
const EVENTS_PER_TURN = 32;

/**
 * Logs traffic asynchronously: events queue in bounded memory, bodies are decoded on other threads and converted to
 * text piece by piece. Events beyond the limit are dropped and counted in the log.
 */
export class TrafficLog {
  logged = 0;
  dropped = 0;
  readonly #log: Pick<Logger, "info" | "warn">;
  readonly #disk: { readonly isBehind: boolean; settled(): Promise<void> } | undefined;
  #waiting: TrafficEvent[] = [];
  /** Events dequeued but not logged yet. */
  #inTurn = 0;
  #announced = 0;
  #isDraining = false;

  constructor(
    log: Pick<Logger, "info" | "warn">,
    disk: { readonly isBehind: boolean; settled(): Promise<void> } | undefined,
  ) {
    this.#log = log;
    this.#disk = disk;
  }

  get waiting(): number {
    return this.#waiting.length + this.#inTurn;
  }

  add(event: TrafficEvent): void {
    if (this.#waiting.length >= MAX_WAITING) {
      this.dropped += 1;
      event.body?.watched.release();
      return;
    }
    this.#waiting.push(event);
    if (this.#isDraining) return;
    this.#isDraining = true;
    void this.#drain();
  }

  async #drain(): Promise<void> {
    // Keeps this work out of the I/O callback that delivered the event.
    await nextTurn();
    while (this.#waiting.length > 0) {
      const turn = this.#waiting.splice(0, EVENTS_PER_TURN);
      this.#inTurn = turn.length;
      for (const event of turn) {
        await this.#put(event);
        this.#inTurn -= 1;
      }
      this.#announceLoss();
      await nextTurn();
      if (this.#disk?.isBehind === true) await this.#disk.settled();
    }
    this.#isDraining = false;
  }

  async #put({ facts, message, body }: TrafficEvent): Promise<void> {
    this.logged += 1;
    if (body === undefined) {
      this.#log.info(facts, message);
      return;
    }
    try {
      await this.#putBody(facts, message, body);
    } catch (error) {
      this.#log.warn({ err: error, id: facts["id"] }, "A body could not be logged");
    } finally {
      body.watched.release();
    }
  }

  async #putBody(facts: TrafficEvent["facts"], message: string, { watched, input }: PendingBody): Promise<void> {
    const { pieces, sizeBytes, isCut } = watched;
    const { parts, note } = await loggedBody({ ...input, pieces, sizeBytes, isCut });
    let part = 0;
    for (const body of parts) {
      part += 1;
      this.#log.info({ ...facts, part, body }, `${message}${part === 1 ? note : "continued"}`);
      await nextTurn();
      if (this.#disk?.isBehind === true) await this.#disk.settled();
    }
    if (part === 0) this.#log.info(facts, `${message}${note}`);
  }

  #announceLoss(): void {
    const count = this.dropped - this.#announced;
    if (count === 0) return;
    this.#announced = this.dropped;
    this.#log.warn(
      { target: "traffic", events: count },
      "Traffic arrived faster than it could be logged; events are missing",
    );
  }
}

/** Limit of bytes shared by all bodies queued for the log. */
export class ByteBudget {
  #leftBytes: number;

  constructor(bytes: number) {
    this.#leftBytes = bytes;
  }

  take(bytes: number): boolean {
    if (bytes > this.#leftBytes) return false;
    this.#leftBytes -= bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#leftBytes += bytes;
  }
}

/** Keeps the first bytes of a passing body; stops if the budget is exhausted. */
export class WatchedBody implements BodyWatcher {
  pieces: Buffer[] = [];
  /** Bytes that passed, kept or not. */
  sizeBytes = 0;
  /** True if the budget was exhausted; nothing of the body is logged. */
  isGivenUp = false;
  #keptBytes = 0;
  readonly #maxBytes: number;
  readonly #budget: ByteBudget;

  constructor(maxBytes: number, budget: ByteBudget) {
    this.#maxBytes = maxBytes;
    this.#budget = budget;
  }

  get isCut(): boolean {
    return this.#keptBytes < this.sizeBytes;
  }

  piece(bytes: Buffer): void {
    this.sizeBytes += bytes.length;
    const kept = bytes.subarray(0, this.#maxBytes - this.#keptBytes);
    if (kept.length === 0 || this.isGivenUp) return;
    if (!this.#budget.take(kept.length)) {
      this.release();
      this.isGivenUp = true;
      return;
    }
    this.#keptBytes += kept.length;
    // Copy a small slice, so that it does not retain a large buffer.
    this.pieces.push(kept.length * 2 < kept.buffer.byteLength ? Buffer.from(kept) : kept);
  }

  end(): void {}

  /** A rule replaced this body. */
  replaced(): void {
    this.release();
    this.sizeBytes = 0;
    this.isGivenUp = false;
  }

  release(): void {
    this.#budget.giveBack(this.#keptBytes);
    this.#keptBytes = 0;
    this.pieces = [];
  }
}

/** A body prepared for the log. */
interface LoggedBody {
  /** Pieces of its text, each small enough for one event; none for binary content. */
  readonly parts: Iterable<string>;
  /** Size, type and missing parts of the body. */
  readonly note: string;
}

/** Bytes converted to text synchronously at a time. */
const PART_BYTES = 65_536;

interface BodyInput {
  readonly pieces: readonly Uint8Array[];
  readonly sizeBytes: number;
  readonly isCut: boolean;
  readonly contentType: string | undefined;
  readonly contentEncoding: readonly string[];
  readonly maxBytes: number;
}

/** Removes content codings off the main thread, up to `maxBytes`, and decodes text. */
async function loggedBody(body: BodyInput): Promise<LoggedBody> {
  const { contentType, contentEncoding, maxBytes } = body;
  const decoded: Uint8Array[] = [];
  const decoder = createContentDecoder(contentEncoding, (bytes) => decoded.push(bytes), { maxBytes: maxBytes });
  for (const piece of body.pieces) await decoder.write(piece);
  const { stop, remaining } = await decoder.end();
  const notes = [bodyNote(body.sizeBytes, contentType)];
  if (remaining.length > 0) notes.push(`said to be coded as ${remaining.join(", ")}, as it came`);
  if (body.isCut || stop === "limit") notes.push("cut");
  else if (stop === "truncated") notes.push("ended early");
  else if (stop === "damaged" && remaining.length === 0) notes.push("damaged");
  const charset = readableCharset(decoded, contentType);
  const note = notes.join(", ");
  return charset === undefined
    ? { parts: [], note: `${note}, not text` }
    : { parts: textParts(decoded, charset), note };
}

export function bodyNote(sizeBytes: number, contentType: string | undefined): string {
  const type = (contentType ?? "").split(";")[0]?.trim() ?? "";
  return `${sizeBytes.toLocaleString("en")} bytes of ${type === "" ? "an unnamed type" : type}`;
}

/** Undefined for binary content: a non-textual type, or bytes that are not text. */
function readableCharset(pieces: readonly Uint8Array[], contentType: string | undefined): string | undefined {
  const first = (pieces[0] ?? new Uint8Array(0)).subarray(0, PART_BYTES);
  if (contentType !== undefined && contentType.trim() !== "") {
    return isTextual(contentType) ? decodeText(first, contentType).charset : undefined;
  }
  const { text, charset, isDamaged } = decodeText(first, undefined);
  return isDamaged || charset === "windows-1252" || /[\x00-\x08\x0e-\x1a\x1c-\x1f]/.test(text) ? undefined : charset;
}

function* textParts(pieces: readonly Uint8Array[], charset: string): Generator<string> {
  const decoder = new TextDecoder(charset);
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += PART_BYTES) {
      const text = decoder.decode(piece.subarray(at, at + PART_BYTES), { stream: true });
      if (text !== "") yield text;
    }
  }
  const rest = decoder.decode();
  if (rest !== "") yield rest;
}
