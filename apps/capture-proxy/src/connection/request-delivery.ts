// Tested by ../../test/engine-content.test.ts
import { LAST_CHUNK, lastChunkWithTrailers } from "@headworks/http1";
import type { Framing, RawFields } from "@headworks/http1";
import type { OriginConnection } from "#upstream/origin-connection.ts";
import { HeldBody } from "./held-body.ts";

/** One request on its way to the origin: its body is held until there is a connection and rules have decided. */
export class RequestDelivery {
  /** How the body comes, or is framed since it was replaced. */
  framing: Framing;
  #origin: OriginConnection | undefined;
  #held: HeldBody | undefined;
  #isComplete = false;

  constructor(framing: Framing) {
    this.framing = framing;
  }

  /** The head was handed to an origin's connection. */
  get isSent(): boolean {
    return this.#origin !== undefined;
  }

  /** The client sent all of it. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  get isWaitedFor(): boolean {
    return this.#held?.isWanted === true;
  }

  /** The body as far as it came before the head was sent. */
  get held(): HeldBody {
    return (this.#held ??= new HeldBody(this.framing, this.#isComplete));
  }

  /** Replaces a body that was waited for. */
  replace(body: Buffer): void {
    this.held.replace(body);
    this.framing = this.held.framing;
  }

  /** Sends the head, and what is there of the body. True: that was all. */
  send(origin: OriginConnection, head: string): boolean {
    this.#origin = origin;
    origin.writer.text(head);
    if (this.#held) for (const piece of this.#held.take()) this.#write(origin, piece);
    return this.#isComplete;
  }

  /** A piece of the body came. False: it is held and nobody waits for more. */
  add(piece: Buffer): boolean {
    if (this.#origin === undefined) return this.held.add(piece);
    this.#write(this.#origin, piece);
    return true;
  }

  /** The client sent the last piece. True: the end is to be sent now. */
  complete(): boolean {
    this.#isComplete = true;
    if (this.#origin === undefined) this.#held?.end();
    return this.#origin !== undefined;
  }

  end(trailers: RawFields | undefined): void {
    if (this.framing.kind === "chunked") {
      this.#origin?.writer.text(trailers ? lastChunkWithTrailers(trailers) : LAST_CHUNK);
    }
    this.#origin?.requestSent();
  }

  /** It goes out once more, on another connection; only without a body. */
  again(): void {
    this.#origin = undefined;
  }

  abandon(): void {
    this.#held?.abandon();
  }

  #write(origin: OriginConnection, piece: Buffer): void {
    if (this.framing.kind === "chunked") origin.writer.chunk(piece);
    else origin.writer.bytes(piece);
  }
}
