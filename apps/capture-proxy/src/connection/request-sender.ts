import type { Framing, RawFields } from "@headworks/http1";
import type { ResponseHandler, Origin, OriginRequest } from "#upstream/origin.ts";
import type { ThrottledStream, BandwidthLimiter, ThrottledPace } from "#exchange/bandwidth-limiter.ts";
import { HeldBody } from "./held-body.ts";

/**
 * A body up to this size is sent once more to an origin that says it did not look at the request; it is kept for that
 * until the answer begins. Larger ones would cost too much memory for what seldom happens.
 */
const REPEATED_BODY_BYTES = 65_536;

/** The exchange whose request it is. */
interface RequestOwner {
  readonly pace: ThrottledPace | undefined;
  /** Bytes of a limited request left: more may be wanted, or its end may be due. */
  onRequestMoved(): void;
}

/**
 * One request on its way to the origin: its body is held until there is a connection and rules have decided, then sent as
 * fast as its line allows.
 */
export class RequestSender {
  /** How the body comes, or is framed since it was replaced. */
  framing: Framing;
  #origin: Origin | undefined;
  #held: HeldBody | undefined;
  #isComplete = false;
  #hasEnded = false;
  readonly #owner: RequestOwner;
  #flow: ThrottledStream | undefined;
  /** What was sent of the body, or waits for its line, as long as it may have to be sent again. */
  #sent: Buffer[] | undefined;
  #sentBytes = 0;

  constructor(framing: Framing, owner: RequestOwner) {
    this.framing = framing;
    this.#owner = owner;
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
  send(origin: Origin, handler: ResponseHandler, request: OriginRequest): boolean {
    this.#origin = origin;
    if (origin.reportsUnprocessed && request.hasBody && !request.isRetry) this.#sent = [];
    const headBytes = origin.send(handler, request);
    this.#owner.pace?.up.charge(headBytes);
    if (this.#held) for (const piece of this.#held.take()) this.#write(origin, piece);
    return this.isReadyToEnd;
  }

  /** All of the body was written, and its end was not. */
  get isReadyToEnd(): boolean {
    return this.#isComplete && !this.#hasEnded && this.#origin !== undefined && (this.#flow?.isEmpty ?? true);
  }

  /** Its line, if it has one, has little left to carry. */
  get wantsMore(): boolean {
    return this.#flow === undefined || this.#flow.isLow;
  }

  /** The origin takes bytes again. */
  resume(): void {
    this.#flow?.resume();
  }

  /** A piece of the body came. False: it is held and nobody waits for more. */
  add(piece: Buffer): boolean {
    if (this.#origin === undefined) return this.held.add(piece);
    this.#write(this.#origin, piece);
    return this.wantsMore;
  }

  /** The client sent the last piece. True: the end is to be sent now. */
  complete(): boolean {
    this.#isComplete = true;
    if (this.#origin === undefined) this.#held?.end();
    return this.isReadyToEnd;
  }

  end(trailers: RawFields | undefined): void {
    this.#hasEnded = true;
    this.#origin?.sendEnd(trailers);
  }

  /** Whether what was sent of the body is still here, all of it. */
  get isRepeatable(): boolean {
    return this.#sent !== undefined;
  }

  /** It goes out once more, on another connection, with what is kept of its body. */
  again(): void {
    this.#origin = undefined;
    this.#hasEnded = false;
    // What waits in it is among what was kept.
    this.#flow?.close();
    this.#flow = undefined;
    const sent = this.#sent;
    this.#sent = undefined;
    for (const piece of sent ?? []) this.held.add(piece);
  }

  /** The origin took it, and will not ask for it again. */
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
