import type { RawFields } from "@headworks/http1";
import type { UpstreamExchange } from "#upstream/upstream-exchange.ts";
import type { ClientStream } from "./client-stream.ts";

/** The part of a client's stream that its body needs. */
export type BodySource = Pick<ClientStream, "readBody" | "pauseBody" | "resumeBody">;

/**
 * The body of a request on its way to an endpoint, or to one after the other: what was sent is kept while another
 * attempt may need it. Between attempts the client waits, so that nothing comes that nobody keeps.
 */
export class UpstreamBody {
  readonly #source: BodySource;
  readonly #limitBytes: number;
  readonly #mostKeptBytes: number;
  #kept: Buffer[] | undefined;
  #exchange: UpstreamExchange | undefined;
  #sizeBytes = 0;
  #isReading = false;
  #isComplete = false;
  #trailers: RawFields | undefined;

  /** `mostKeptBytes` of 0 keeps nothing; `limitBytes` is what the request may have. */
  constructor(source: BodySource, bytes: { readonly limitBytes: number; readonly mostKeptBytes: number }) {
    this.#source = source;
    this.#limitBytes = bytes.limitBytes;
    this.#mostKeptBytes = bytes.mostKeptBytes;
    if (bytes.mostKeptBytes > 0) this.#kept = [];
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
    return this.#kept !== undefined || !this.#isReading;
  }

  /** Sends it on this way, what is kept first; only while `canRepeat`. The head was sent just before. */
  attach(exchange: UpstreamExchange): void {
    this.#exchange = exchange;
    if (!this.#isReading) {
      this.#isReading = true;
      exchange.flush();
      this.#source.readBody();
      return;
    }
    for (const piece of this.#kept ?? []) exchange.sendData(piece);
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
    this.#kept = undefined;
  }

  /** A piece of the client's; false when the body is longer than allowed. */
  data(piece: Buffer): boolean {
    this.#sizeBytes += piece.length;
    if (this.#sizeBytes > this.#limitBytes) return false;
    if (this.#kept !== undefined) {
      if (this.#sizeBytes > this.#mostKeptBytes) this.#kept = undefined;
      // The piece may lie in memory that is read into again.
      else this.#kept.push(Buffer.from(piece));
    }
    this.#exchange?.sendData(piece);
    return true;
  }

  trailers(fields: RawFields | undefined): void {
    this.#trailers = fields;
  }

  end(): void {
    this.#isComplete = true;
    this.#exchange?.sendEnd(this.#trailers);
  }

  /** One read of the client's is worked off. */
  batch(): void {
    if (this.#exchange !== undefined && !this.#isComplete && !this.#exchange.flush()) this.#source.pauseBody();
  }

  /** The endpoint takes more. */
  drained(): void {
    if (this.#exchange !== undefined && !this.#isComplete) this.#source.resumeBody();
  }
}
