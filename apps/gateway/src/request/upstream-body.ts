import type { RawFields } from "@headworks/http1";
import type { BufferBudget, SharedBytes } from "@headworks/sockets";
import type { UpstreamExchange } from "#upstream/upstream-exchange.ts";
import type { ClientStream } from "./client-stream.ts";

/** The body part of a client's stream. */
export type BodySource = Pick<ClientStream, "readBody" | "pauseBody" | "resumeBody">;

/** Buffering limit for a body without a length: its client may wait for a response before it sends more. */
const UNKNOWN_LENGTH_MS = 1000;

/**
 * The request body for an endpoint, or for several in turn: sent bytes are kept while another attempt may need them.
 * Between attempts the client is paused, so that no bytes are lost.
 */
export class UpstreamBody {
  readonly #source: BodySource;
  readonly #limitBytes: number;
  readonly #maxKeptBytes: number;
  #kept: Buffer[] | undefined;
  #exchange: UpstreamExchange | undefined;
  #sizeBytes = 0;
  #isReading = false;
  #isSent = false;
  /** Called once enough of the body has arrived; the caller then acquires a connection. */
  #ready: (() => void) | undefined;
  #readyBytes = 0;
  #budget: BufferBudget | undefined;
  #budgetBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #isComplete = false;
  #trailers: RawFields | undefined;

  /** `maxKeptBytes` 0 keeps nothing; `limitBytes` limits the whole body. */
  constructor(source: BodySource, bytes: { readonly limitBytes: number; readonly maxKeptBytes: number }) {
    this.#source = source;
    this.#limitBytes = bytes.limitBytes;
    this.#maxKeptBytes = bytes.maxKeptBytes;
    if (bytes.maxKeptBytes > 0) this.#kept = [];
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** The client has sent all of it. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Whether it can be sent from its first byte. */
  get canRepeat(): boolean {
    return this.#kept !== undefined || !this.#isSent;
  }

  /**
   * Reads ahead, and calls `ready` when the whole body or `maxBytes` have arrived, or the budget is exhausted. A body
   * without a length is buffered for at most a second. The client is then paused until the body is attached.
   */
  fill(
    { maxBytes, hasLength, budget }: { maxBytes: number; hasLength: boolean; budget: BufferBudget },
    ready: () => void,
  ): void {
    this.#kept = [];
    this.#ready = ready;
    this.#readyBytes = maxBytes;
    this.#budget = budget;
    if (!hasLength) this.#timer = setTimeout(() => this.#filled(), UNKNOWN_LENGTH_MS);
    this.#isReading = true;
    this.#source.readBody();
  }

  /** Sends the body on this connection, kept bytes first; only while `canRepeat`. The head was sent just before. */
  attach(exchange: UpstreamExchange): void {
    this.#exchange = exchange;
    this.#isSent = true;
    if (!this.#isReading) {
      this.#isReading = true;
      exchange.flush();
      this.#source.readBody();
      return;
    }
    for (const piece of this.#kept ?? []) exchange.sendData(piece);
    this.#release();
    if (this.#sizeBytes > this.#maxKeptBytes) this.#kept = undefined;
    if (this.#isComplete) exchange.sendEnd(this.#trailers);
    else if (exchange.flush()) this.#source.resumeBody();
  }

  /** The connection failed: pauses the client. */
  detach(): void {
    this.#exchange = undefined;
    if (this.#isReading && !this.#isComplete) this.#source.pauseBody();
  }

  /** No further attempt will follow. */
  forget(): void {
    clearTimeout(this.#timer);
    this.#ready = undefined;
    this.#kept = undefined;
    this.#release();
  }

  /** A piece from the client; false if the body exceeds its limit. */
  data(piece: SharedBytes): boolean {
    this.#sizeBytes += piece.length;
    if (this.#sizeBytes > this.#limitBytes) return false;
    if (this.#kept !== undefined) {
      if (this.#isSent && this.#sizeBytes > this.#maxKeptBytes) this.#kept = undefined;
      // The memory of the piece is reused for the next read.
      else this.#kept.push(Buffer.from(piece));
    }
    if (this.#ready !== undefined) this.#charge(piece.length);
    this.#exchange?.sendData(piece);
    return true;
  }

  trailers(fields: RawFields | undefined): void {
    this.#trailers = fields;
  }

  end(): void {
    this.#isComplete = true;
    if (this.#ready !== undefined) return this.#filled();
    this.#exchange?.sendEnd(this.#trailers);
  }

  /** One read from the client is processed. */
  batch(): void {
    if (this.#ready !== undefined && this.#sizeBytes >= this.#readyBytes) return this.#filled();
    if (this.#exchange !== undefined && !this.#isComplete && !this.#exchange.flush()) this.#source.pauseBody();
  }

  /** The endpoint accepts more. */
  drained(): void {
    if (this.#exchange !== undefined && !this.#isComplete) this.#source.resumeBody();
  }

  #filled(): void {
    clearTimeout(this.#timer);
    const ready = this.#ready;
    this.#ready = undefined;
    if (!this.#isComplete) this.#source.pauseBody();
    ready?.();
  }

  #charge(sizeBytes: number): void {
    if (this.#budget?.reserve(sizeBytes) === true) this.#budgetBytes += sizeBytes;
    // The part that arrived stays; reading stops.
    else this.#readyBytes = 0;
  }

  #release(): void {
    if (this.#budgetBytes === 0) return;
    this.#budget?.release(this.#budgetBytes);
    this.#budgetBytes = 0;
  }
}
