import type { RawFields } from "@headworks/http1";
import type { BufferBudget } from "@headworks/sockets";
import type { UpstreamExchange } from "#upstream/upstream-exchange.ts";
import type { ClientStream } from "./client-stream.ts";

/** The part of a client's stream that its body needs. */
export type BodySource = Pick<ClientStream, "readBody" | "pauseBody" | "resumeBody">;

/** How long a body without a length is waited for: perhaps its client wants to hear something before it goes on. */
const UNKNOWN_LENGTH_MS = 1000;

/**
 * The body of a request on its way to an endpoint, or to one after the other: what was sent is kept while another
 * attempt may need it. Between attempts the client waits, so that nothing comes that nobody keeps.
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
  /** Called once enough of it is here; a way to send it is asked for then. */
  #ready: (() => void) | undefined;
  #readyBytes = 0;
  #budget: BufferBudget | undefined;
  #budgetBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #isComplete = false;
  #trailers: RawFields | undefined;

  /** `maxKeptBytes` of 0 keeps nothing; `limitBytes` is what the request may have. */
  constructor(source: BodySource, bytes: { readonly limitBytes: number; readonly maxKeptBytes: number }) {
    this.#source = source;
    this.#limitBytes = bytes.limitBytes;
    this.#maxKeptBytes = bytes.maxKeptBytes;
    if (bytes.maxKeptBytes > 0) this.#kept = [];
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** All of it came from the client. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Whether it can be sent from its first byte. */
  get canRepeat(): boolean {
    return this.#kept !== undefined || !this.#isSent;
  }

  /**
   * Reads the beginning, and calls `ready` when all of it or `maxBytes` are here, or the budget has no more. One without a
   * length is not waited for longer than a second. The client waits then until the body is attached.
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

  /** Sends it on this way, what is kept first; only while `canRepeat`. The head was sent just before. */
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
    this.#giveBack();
    if (this.#sizeBytes > this.#maxKeptBytes) this.#kept = undefined;
    if (this.#isComplete) exchange.sendEnd(this.#trailers);
    else if (exchange.flush()) this.#source.resumeBody();
  }

  /** The way is of no use any more: the client waits. */
  detach(): void {
    this.#exchange = undefined;
    if (this.#isReading && !this.#isComplete) this.#source.pauseBody();
  }

  /** There will be no further attempt. */
  forget(): void {
    clearTimeout(this.#timer);
    this.#ready = undefined;
    this.#kept = undefined;
    this.#giveBack();
  }

  /** A piece of the client's; false when the body is longer than allowed. */
  data(piece: Buffer): boolean {
    this.#sizeBytes += piece.length;
    if (this.#sizeBytes > this.#limitBytes) return false;
    if (this.#kept !== undefined) {
      if (this.#isSent && this.#sizeBytes > this.#maxKeptBytes) this.#kept = undefined;
      // The piece may lie in memory that is read into again.
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

  /** One read of the client's is worked off. */
  batch(): void {
    if (this.#ready !== undefined && this.#sizeBytes >= this.#readyBytes) return this.#filled();
    if (this.#exchange !== undefined && !this.#isComplete && !this.#exchange.flush()) this.#source.pauseBody();
  }

  /** The endpoint takes more. */
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
    if (this.#budget?.take(sizeBytes) === true) this.#budgetBytes += sizeBytes;
    // The part that arrived stays; no more of it is read.
    else this.#readyBytes = 0;
  }

  #giveBack(): void {
    if (this.#budgetBytes === 0) return;
    this.#budget?.giveBack(this.#budgetBytes);
    this.#budgetBytes = 0;
  }
}
