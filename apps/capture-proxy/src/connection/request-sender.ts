import type { Framing, RawFields } from "@headworks/http1";
import type { ResponseHandler, Origin, OriginRequest } from "#upstream/origin.ts";
import type { ThrottledStream, BandwidthLimiter, ThrottledPace } from "#exchange/bandwidth-limiter.ts";
import { HeldBody } from "./held-body.ts";

/**
 * Bodies up to this size are kept until the response begins, so that they can be resent if the origin reports the
 * request as unprocessed.
 */
const REPEATED_BODY_BYTES = 65_536;

interface RequestOwner {
  readonly pace: ThrottledPace | undefined;
  /** The bandwidth limiter released request bytes. */
  onRequestMoved(): void;
}

/**
 * Sends one request to the origin: buffers its body until there is a connection and rules have decided, then writes it
 * through the bandwidth limiter.
 */
export class RequestSender {
  /** Framing as received, or of the replacement. */
  framing: Framing;
  #origin: Origin | undefined;
  #held: HeldBody | undefined;
  #isComplete = false;
  #hasEnded = false;
  readonly #owner: RequestOwner;
  #flow: ThrottledStream | undefined;
  /** Body pieces already sent or queued, while they may have to be resent. */
  #sent: Buffer[] | undefined;
  #sentBytes = 0;

  constructor(framing: Framing, owner: RequestOwner) {
    this.framing = framing;
    this.#owner = owner;
  }

  /** The head was given to an origin connection. */
  get isSent(): boolean {
    return this.#origin !== undefined;
  }

  /** The client sent the whole body. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  get isWaitedFor(): boolean {
    return this.#held?.isWanted === true;
  }

  /** The body received before the head was sent. */
  get held(): HeldBody {
    return (this.#held ??= new HeldBody(this.framing, this.#isComplete));
  }

  /** Replaces a body that was awaited. */
  replace(body: Buffer): void {
    this.held.replace(body);
    this.framing = this.held.framing;
  }

  /** Sends the head and the buffered body. True: the request is complete. */
  send(origin: Origin, handler: ResponseHandler, request: OriginRequest): boolean {
    this.#origin = origin;
    if (origin.reportsUnprocessed && request.hasBody && !request.isRetry) this.#sent = [];
    const headBytes = origin.send(handler, request);
    this.#owner.pace?.up.charge(headBytes);
    if (this.#held) for (const piece of this.#held.take()) this.#write(origin, piece);
    return this.isReadyToEnd;
  }

  /** The whole body was written, but not its end. */
  get isReadyToEnd(): boolean {
    return this.#isComplete && !this.#hasEnded && this.#origin !== undefined && (this.#flow?.isEmpty ?? true);
  }

  /** The limiter's queue, if any, is low. */
  get wantsMore(): boolean {
    return this.#flow === undefined || this.#flow.isLow;
  }

  resume(): void {
    this.#flow?.resume();
  }

  /** False: the piece was buffered and nothing awaits more, so reading may pause. */
  add(piece: Buffer): boolean {
    if (this.#origin === undefined) return this.held.add(piece);
    this.#write(this.#origin, piece);
    return this.wantsMore;
  }

  /** The client sent the last piece. True: the end must be sent now. */
  complete(): boolean {
    this.#isComplete = true;
    if (this.#origin === undefined) this.#held?.end();
    return this.isReadyToEnd;
  }

  end(trailers: RawFields | undefined): void {
    this.#hasEnded = true;
    this.#origin?.sendEnd(trailers);
  }

  /** The complete body sent so far is still available. */
  get isRepeatable(): boolean {
    return this.#sent !== undefined;
  }

  /** Prepares a retry on another connection from the kept body. */
  again(): void {
    this.#origin = undefined;
    this.#hasEnded = false;
    // Its queue is part of the kept body.
    this.#flow?.close();
    this.#flow = undefined;
    const sent = this.#sent;
    this.#sent = undefined;
    for (const piece of sent ?? []) this.held.add(piece);
  }

  /** The response began, so no retry is possible: releases the kept body. */
  accepted(): void {
    this.#sent = undefined;
  }

  abandon(): void {
    this.#held?.abandon();
    this.#sent = undefined;
    this.#flow?.close();
  }

  #write(origin: Origin, piece: Buffer): void {
    if (this.#sent !== undefined) this.#keep(this.#sent, piece);
    if (this.#owner.pace === undefined) return origin.sendData(piece);
    this.#writePaced(origin, piece, this.#owner.pace.up);
  }

  #keep(sent: Buffer[], piece: Buffer): void {
    this.#sentBytes += piece.length;
    if (this.#sentBytes > REPEATED_BODY_BYTES) this.#sent = undefined;
    else sent.push(piece);
  }

  #writePaced(origin: Origin, piece: Buffer, line: BandwidthLimiter): void {
    if (this.#flow === undefined && !line.isLimited) {
      line.charge(piece.length);
      return origin.sendData(piece);
    }
    this.#flow ??= line.open({
      take: (part) => {
        origin.sendData(part);
        return origin.flush();
      },
      moved: () => this.#owner.onRequestMoved(),
    });
    this.#flow.add(piece);
  }
}
