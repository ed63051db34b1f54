import { hasBody, type Framing, type RawFields } from "@headworks/http1";
import type { ClientHandler } from "./client-stream.ts";
import type { BodyCheck, Refusal } from "./phases.ts";

/**
 * Shows a request's body to a check on its way to a handler. Nothing is kept but the end: the handler gets the last byte
 * of a body of known length, and the end of any other, only after the check agreed with the whole. So an upstream never
 * sees a complete request whose body is not the one that was meant.
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

  /** `next` itself where there is nothing to check; checks of empty bodies are their gates' business. */
  static around(next: ClientHandler, check: BodyCheck | undefined, framing: Framing): ClientHandler {
    return check === undefined || !hasBody(framing) ? next : new CheckedBody(next, check, framing);
  }

  onBodyData(piece: Buffer): void {
    this.#check.onData(piece);
    this.#leftBytes -= piece.length;
    if (this.#leftBytes > 0 || piece.length === 0) return this.#next.onBodyData(piece);
    // A copy: the piece may lie in memory that is read into again.
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
