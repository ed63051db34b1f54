// Tested by open-capture-store.test.ts
import { encodeRecord } from "./record-message.ts";
import { replacedBodies } from "./rule-effects.ts";
import type { ExchangeView } from "#exchange/exchange.ts";
import type { RecordBatch } from "./writer-messages.ts";

/** A batch is sent when it has waited so long: a commit rewrites pages, and pages are shared by what comes together, */
const BATCH_MS = 20;
/** or has so many entries, */
const BATCH_ENTRIES = 256;
/** or so many bytes. */
const BATCH_BYTES = 4_194_304;

/** Gathers encoded entries of a few milliseconds into one message with one buffer. */
export class RecordQueue {
  readonly #send: (batch: RecordBatch) => void;
  #texts: string[] = [];
  #pieces: (readonly Buffer[])[] = [];
  #bodyBytes = 0;
  #textBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (batch: RecordBatch) => void) {
    this.#send = send;
  }

  /** Waiting, not yet sent. */
  get entries(): number {
    return this.#texts.length;
  }

  get bytes(): number {
    return this.#bodyBytes + this.#textBytes;
  }

  add(seq: number, again: boolean, sessionNumber: number, exchange: ExchangeView, storesBodies: boolean): void {
    const text = encodeRecord(seq, again, sessionNumber, exchange, storesBodies);
    this.#texts.push(text);
    this.#textBytes += text.length;
    const step = exchange.state.step;
    if (step === "completed" || step === "failed") {
      if (storesBodies) {
        this.#addBody(exchange.requestBody);
        this.#addBody(exchange.responseBody);
      }
      if (exchange.modified) this.#addPieces(replacedBodies(exchange));
    }
    if (this.#texts.length >= BATCH_ENTRIES || this.bytes >= BATCH_BYTES) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  /** Sends what waits, now. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#texts.length === 0) return;
    const bodies = new ArrayBuffer(this.#bodyBytes);
    const target = new Uint8Array(bodies);
    let offset = 0;
    for (const pieces of this.#pieces) {
      for (const piece of pieces) {
        target.set(piece, offset);
        offset += piece.length;
      }
    }
    const batch: RecordBatch = {
      kind: "batch",
      entries: this.#texts.length,
      bytes: this.bytes,
      text: this.#texts.join("\n"),
      bodies,
    };
    this.#texts = [];
    this.#pieces = [];
    this.#bodyBytes = 0;
    this.#textBytes = 0;
    this.#send(batch);
  }

  #addBody(body: ExchangeView["requestBody"]): void {
    if (body.sizeBytes === 0 || body.spooled !== undefined || body.pieces.length === 0) return;
    this.#addPieces(body.pieces);
  }

  #addPieces(pieces: readonly Buffer[]): void {
    this.#pieces.push(pieces);
    for (const piece of pieces) this.#bodyBytes += piece.length;
  }
}
