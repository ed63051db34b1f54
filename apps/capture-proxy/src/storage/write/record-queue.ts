import { BATCH_BYTES, BatchMemory } from "./batch-memory.ts";
import type { RecordedBefore } from "./entry-record.ts";
import { encodeRecord } from "./record-message.ts";
import { replacedBodies } from "../read/rule-effects.ts";
import type { ExchangeView } from "#exchange/exchange.ts";
import type { RecordBatch } from "./writer-messages.ts";

/** A batch is sent when it is full, or has waited so long: a commit rewrites pages, and pages are shared by what comes together. */
const BATCH_MS = 20;
/** Memory that is kept for the next batches: as much as is under way while storing keeps up. */
const MAX_SPARE = 8;

/** Gathers encoded entries of a few milliseconds into one message. */
export class RecordQueue {
  readonly #send: (batch: RecordBatch) => void;
  #batch: BatchMemory | undefined;
  /** Memory that came back. New memory for each batch would be memory that the processor has to be given page by page. */
  readonly #spare: ArrayBuffer[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (batch: RecordBatch) => void) {
    this.#send = send;
  }

  /** Waiting, not yet sent. */
  get entries(): number {
    return this.#batch?.entries ?? 0;
  }

  get bytes(): number {
    return this.#batch?.usedBytes ?? 0;
  }

  add(seq: number, before: RecordedBefore, sessionNumber: number, exchange: ExchangeView, storesBodies: boolean): void {
    const text = encodeRecord(seq, before, sessionNumber, exchange, storesBodies);
    const bodies = bodiesOf(exchange, storesBodies);
    let bodyBytes = 0;
    for (const body of bodies) bodyBytes += body.length;
    if (this.#batch?.hasRoomFor(text, bodyBytes) === false) this.flush();
    const batch = (this.#batch ??= this.#memoryFor(text, bodyBytes));
    batch.add(text, bodies);
    if (batch.isFull) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  /** Sends what waits, now. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#batch;
    if (batch === undefined) return;
    this.#batch = undefined;
    this.#send({ kind: "batch", entries: batch.entries, bytes: batch.usedBytes, memory: batch.memory });
  }

  /** Takes back the memory of a batch that nobody looks at any more. */
  takeBack(memory: ArrayBuffer): void {
    if (memory.byteLength === BATCH_BYTES && this.#spare.length < MAX_SPARE) this.#spare.push(memory);
  }

  #memoryFor(text: string, bodyBytes: number): BatchMemory {
    const spare = this.#spare.pop();
    if (spare !== undefined) {
      const batch = new BatchMemory(spare);
      if (batch.hasRoomFor(text, bodyBytes)) return batch;
      this.#spare.push(spare);
    }
    return BatchMemory.for(text, bodyBytes);
  }
}

const NONE: readonly Buffer[] = [];

/** Bytes that travel with an entry. */
function bodiesOf(exchange: ExchangeView, storesBodies: boolean): readonly Buffer[] {
  const { step } = exchange.state;
  if (!storesBodies || (step !== "completed" && step !== "failed")) return NONE;
  const sent = inlinePieces(exchange.requestBody);
  const received = inlinePieces(exchange.responseBody);
  if (sent.length === 0 && !exchange.modified) return received;
  return [...sent, ...received, ...(exchange.modified ? replacedBodies(exchange) : NONE)];
}

function inlinePieces(body: ExchangeView["requestBody"]): readonly Buffer[] {
  return body.sizeBytes === 0 || body.spooled !== undefined ? NONE : body.pieces;
}
