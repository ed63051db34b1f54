import { type Framing, hasBody, type RawFields } from "@headworks/http1";
import type { BufferBudget, SharedBytes } from "@headworks/sockets";
import type { UpstreamExchange } from "#upstream/upstream-exchange.ts";
import type { BodyCheck, ClientHandler, ClientStream, Refusal } from "./context.ts";

/** The body part of a client's stream. */
export type ClientBody = Pick<ClientStream, "readBody" | "pauseBody" | "resumeBody">;

/** Buffering limit for a body without a length: its client may wait for a response before it sends more. */
const UNKNOWN_LENGTH_MS = 1000;

/**
 * The request body for an endpoint, or for several in turn: sent bytes are kept while another attempt may need them.
 * Between attempts the client is paused, so that no bytes are lost.
 */
export class UpstreamBody {
  readonly #source: ClientBody;
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
  constructor(source: ClientBody, bytes: { readonly limitBytes: number; readonly maxKeptBytes: number }) {
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

/**
 * Runs a check over a request body on its way to a handler. Only the end is held back: the last byte of a body of
 * known length, and the end of any other, is delivered after the check has passed. So an upstream never sees a
 * complete request with a body that fails the check.
 */
export class CheckedBody implements ClientHandler {
  readonly #next: ClientHandler;
  readonly #check: BodyCheck;
  #leftBytes: number;
  #last: Buffer | undefined;

  private constructor(next: ClientHandler, check: BodyCheck, framing: Framing) {
    this.#next = next;
    this.#check = check;
    this.#leftBytes = framing.kind === "length" ? framing.lengthBytes : Number.POSITIVE_INFINITY;
  }

  /** Returns `next` itself if there is nothing to check; gates check empty bodies themselves. */
  static around(next: ClientHandler, check: BodyCheck | undefined, framing: Framing): ClientHandler {
    return check === undefined || !hasBody(framing) ? next : new CheckedBody(next, check, framing);
  }

  onBodyData(piece: SharedBytes): void {
    this.#check.onData(piece);
    this.#leftBytes -= piece.length;
    if (this.#leftBytes > 0 || piece.length === 0) return this.#next.onBodyData(piece);
    // A copy: the memory of the piece is reused for the next read.
    this.#last = Buffer.from(piece.subarray(-1));
    if (piece.length > 1) this.#next.onBodyData(piece.subarray(0, -1));
  }

  onBodyTrailers(fields: RawFields): void {
    this.#next.onBodyTrailers(fields);
  }

  onBodyEnd(): void {
    const refusal = this.#check.onEnd();
    if (refusal !== undefined) return this.#next.onRefused(refusal);
    if (this.#last !== undefined) this.#next.onBodyData(this.#last);
    this.#next.onBodyEnd();
  }

  onBodyBatch(): void {
    this.#next.onBodyBatch();
  }

  onClientDrain(): void {
    this.#next.onClientDrain();
  }

  onClientGone(): void {
    this.#next.onClientGone();
  }

  onRefused(refusal: Refusal): void {
    this.#next.onRefused(refusal);
  }
}
