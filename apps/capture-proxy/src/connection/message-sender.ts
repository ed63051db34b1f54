import { type Framing, hasBody, Http1Error, lengthFraming, NO_BODY, type RawFields } from "@headworks/http1";
import type { BandwidthLimiter, ThrottledPace, ThrottledStream } from "#exchange/bandwidth-limiter.ts";
import type { BodyFilter, OpenFilter } from "#exchange/body.ts";
import type { Content, ResponseMessage } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { Origin, OriginRequest, ResponseHandler } from "#upstream/origin.ts";
import { internalFailure } from "./client-failures.ts";

const TOO_LARGE: Content = { kind: "too-large" };
const GONE: Content = { kind: "gone" };

interface Waiter {
  readonly limitBytes: number;
  readonly resolve: (content: Content) => void;
}

/** A body buffered while interceptors decide, and the pending promise for its complete content. */
export class HeldBody {
  /** Framing of the body as it is buffered now. */
  framing: Framing;
  #pieces: Buffer[] = [];
  #sizeBytes = 0;
  #isComplete: boolean;
  #waiting: Waiter[] = [];

  constructor(framing: Framing, isComplete: boolean) {
    this.framing = framing;
    this.#isComplete = isComplete || !hasBody(framing);
  }

  /** A `content` promise is pending. */
  get isWanted(): boolean {
    return this.#waiting.length > 0;
  }

  /** Resolves when the body is complete, exceeds `limitBytes`, or fails. `onWanted`: read more of it. */
  content(limitBytes: number, isFinished: boolean, onWanted: () => void): Promise<Content> {
    if (isFinished) return Promise.resolve(GONE);
    if (this.#sizeBytes > limitBytes) return Promise.resolve(TOO_LARGE);
    if (this.#isComplete) return Promise.resolve({ kind: "complete", bytes: this.joined() });
    if (isKnownLonger(this.framing, limitBytes)) return Promise.resolve(TOO_LARGE);
    return new Promise((resolve) => {
      this.#waiting.push({ limitBytes, resolve });
      onWanted();
    });
  }

  /** Buffers a piece. False: reading may pause. A body over the limit resolves the promise as too large. */
  add(piece: Buffer): boolean {
    this.#pieces.push(piece);
    this.#sizeBytes += piece.length;
    if (this.#waiting.length > 0) this.#settle(TOO_LARGE, ({ limitBytes }) => this.#sizeBytes > limitBytes);
    return this.isWanted;
  }

  end(): void {
    this.#isComplete = true;
    if (this.isWanted) this.#settle({ kind: "complete", bytes: this.joined() });
  }

  /** The exchange is over: resolves pending promises. */
  abandon(): void {
    this.#pieces = [];
    this.#settle(GONE);
  }

  /** Replaces the body. Throws TypeError while more of the original body is expected. */
  replace(bytes: Buffer): void {
    if (!this.#isComplete) throw new TypeError("A body can be replaced only after it was awaited");
    this.#pieces = bytes.length === 0 ? [] : [bytes];
    this.#sizeBytes = bytes.length;
    if (bytes.length > 0 || this.framing.kind !== "none") this.framing = lengthFraming(bytes.length);
  }

  /** All bytes so far in one buffer; they stay buffered. */
  joined(): Buffer {
    const [only] = this.#pieces;
    if (only !== undefined && this.#pieces.length === 1) return only;
    const joined = Buffer.concat(this.#pieces);
    if (joined.length > 0) this.#pieces = [joined];
    return joined;
  }

  get pieces(): readonly Buffer[] {
    return this.#pieces;
  }

  /** Removes and returns the buffered pieces. */
  take(): readonly Buffer[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#sizeBytes = 0;
    return pieces;
  }

  #settle(content: Content, concerns: (waiter: Waiter) => boolean = () => true): void {
    const settled = this.#waiting.filter(concerns);
    this.#waiting = this.#waiting.filter((waiter) => !settled.includes(waiter));
    for (const { resolve } of settled) resolve(content);
  }
}

/** Whether the declared length already exceeds the limit. */
export function isKnownLonger(framing: Framing, limitBytes: number): boolean {
  return framing.kind === "length" && framing.lengthBytes > limitBytes;
}

/** The target of a message's body. */
interface BodyWriter {
  sendData(piece: Buffer): void;
  /** Flushes buffered writes. False: stop until the receiver drains. */
  flush(): boolean;
}

interface SenderOwner {
  fail(failure: Failure): void;
}

/** A filter may change the length of a body. */
const UNKNOWN_LENGTH: Framing = { kind: "chunked" };

/** Common to both directions: the held body, its framing, its filter, and the queue of the bandwidth limiter. */
abstract class MessageSender<Owner extends SenderOwner> {
  /** The whole body was received. */
  isComplete = false;
  protected heldBody: HeldBody | undefined = undefined;
  protected queue: ThrottledStream | undefined = undefined;
  /** Opened when the body is first forwarded. */
  protected filter: BodyFilter | undefined = undefined;
  protected readonly owner: Owner;
  #framing: Framing;
  #openFilter: OpenFilter | undefined;

  constructor(framing: Framing, owner: Owner) {
    this.#framing = framing;
    this.owner = owner;
  }

  /** Framing as received, of the replacement, or of what leaves a filter. */
  get framing(): Framing {
    const isUnknown = this.#openFilter !== undefined && this.#framing.kind === "length" && hasBody(this.#framing);
    return isUnknown ? UNKNOWN_LENGTH : this.#framing;
  }

  set framing(framing: Framing) {
    this.#framing = framing;
  }

  get isFiltered(): boolean {
    return this.#openFilter !== undefined;
  }

  filterBody(open: OpenFilter): void {
    if (this.#openFilter !== undefined) throw new TypeError("The body has a filter already");
    this.#openFilter = open;
  }

  /** Removes a filter that was not opened. Returns the pieces held for it, which stay held. */
  removeFilter(): readonly Buffer[] {
    if (this.#openFilter === undefined || this.filter !== undefined) return [];
    this.#openFilter = undefined;
    return this.heldBody?.pieces ?? [];
  }

  /** A filter's decision is pending. */
  get isDeciding(): boolean {
    return this.filter?.isDeciding === true;
  }

  get isWaitedFor(): boolean {
    return this.heldBody?.isWanted === true;
  }

  /** The body received before the head was sent. */
  get held(): HeldBody {
    return (this.heldBody ??= new HeldBody(this.framing, this.isComplete));
  }

  /** Replaces a body that was awaited. */
  replace(body: Buffer): void {
    this.held.replace(body);
    this.framing = this.held.framing;
  }

  /** The first queue of the body, if any, is low. */
  get wantsMore(): boolean {
    if (this.filter !== undefined) return this.filter.isLow;
    return this.queue === undefined || this.queue.isLow;
  }

  /** Nothing of the body waits in a queue. */
  protected get hasPassedQueues(): boolean {
    if (this.filter !== undefined && !this.filter.isEmpty) return false;
    return this.queue === undefined || this.queue.isEmpty;
  }

  resume(): void {
    this.queue?.resume();
    this.#resumeFilter();
  }

  abandon(): void {
    this.heldBody?.abandon();
    this.filter?.close();
    this.queue?.close();
  }

  /** Starts without filter again. */
  protected reset(): void {
    this.abandon();
    this.heldBody = undefined;
    this.filter = undefined;
    this.#openFilter = undefined;
  }

  /** Writes a piece; one that passed the filter if there is one. */
  protected abstract write(piece: Buffer): void;
  /** Writes a piece from the filter. False: stop until {@link resume}. */
  protected abstract writeFiltered(piece: Buffer): boolean;

  /** Sends what was held; pieces held again for a retry have passed the filter already. */
  protected sendHeld(): void {
    const pieces = this.heldBody?.take();
    if (this.#openFilter === undefined || this.filter !== undefined) {
      if (pieces !== undefined) for (const piece of pieces) this.write(piece);
      return this.#resumeFilter();
    }
    const filter = this.#openFilter({
      take: (piece) => this.writeFiltered(piece),
      moved: () => this.moved(),
      failed: (error) => this.owner.fail(internalFailure(error)),
    });
    this.filter = filter;
    for (const piece of pieces ?? []) filter.add(piece);
    if (this.isComplete) filter.end();
  }

  protected hasRoom(to: BodyWriter): boolean {
    return this.queue === undefined ? to.flush() : this.queue.isLow;
  }

  #resumeFilter(): void {
    if (this.queue === undefined || this.queue.isLow) this.filter?.resume();
  }

  protected sendPaced(to: BodyWriter, piece: Buffer, limiter: BandwidthLimiter): void {
    if (this.queue === undefined && !limiter.isLimited) {
      limiter.charge(piece.length);
      return to.sendData(piece);
    }
    this.queue ??= limiter.open({
      take: (part) => {
        to.sendData(part);
        return to.flush();
      },
      moved: () => {
        this.#resumeFilter();
        this.moved();
      },
    });
    this.queue.add(piece);
  }

  /** A filter or the bandwidth limiter released bytes. */
  protected abstract moved(): void;
}

/** Bodies up to this size are kept until the response begins, to be resent if unprocessed. */
const REPEATED_BODY_BYTES = 65_536;

interface RequestOwner extends SenderOwner {
  readonly pace: ThrottledPace | undefined;
  /** A piece of the request body passed its filter. */
  onRequestFiltered(piece: Buffer): void;
  /** A filter or the bandwidth limiter released request bytes. */
  onRequestMoved(): void;
}

/** Sends one request to the origin: buffers its body until it may be written. */
export class RequestSender extends MessageSender<RequestOwner> {
  #origin: Origin | undefined;
  #hasEnded = false;
  /** Body pieces already sent or queued, while they may have to be resent. */
  #sent: Buffer[] | undefined;
  #sentBytes = 0;

  constructor(framing: Framing, owner: RequestOwner) {
    super(framing, owner);
  }

  /** The head was given to an origin connection. */
  get isSent(): boolean {
    return this.#origin !== undefined;
  }

  /** Sends the head and the buffered body. True: the request is complete. */
  send(origin: Origin, handler: ResponseHandler, request: OriginRequest): boolean {
    this.#origin = origin;
    if (origin.reportsUnprocessed && request.hasBody && !request.isRetry) this.#sent = [];
    const headBytes = origin.send(handler, request);
    this.owner.pace?.up.charge(headBytes);
    this.sendHeld();
    return this.isReadyToEnd;
  }

  /** The whole body was written, but not its end. */
  get isReadyToEnd(): boolean {
    return this.isComplete && !this.#hasEnded && this.#origin !== undefined && this.hasPassedQueues;
  }

  /** False: the piece was buffered and nothing awaits more, so reading may pause. */
  add(piece: Buffer): boolean {
    if (this.filter !== undefined) this.filter.add(piece);
    else if (this.#origin === undefined) return this.held.add(piece);
    else this.write(piece);
    return this.wantsMore;
  }

  /** The client sent the last piece. True: the end must be sent now. */
  complete(): boolean {
    this.isComplete = true;
    this.filter?.end();
    if (this.#origin === undefined) this.heldBody?.end();
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
    this.queue?.close();
    this.queue = undefined;
    const sent = this.#sent;
    this.#sent = undefined;
    for (const piece of sent ?? []) this.held.add(piece);
  }

  /** The response began, so no retry is possible: releases the kept body. */
  accepted(): void {
    this.#sent = undefined;
  }

  override abandon(): void {
    super.abandon();
    this.#sent = undefined;
  }

  protected moved(): void {
    this.owner.onRequestMoved();
  }

  protected write(piece: Buffer): void {
    const origin = this.#origin;
    if (origin === undefined) return void this.held.add(piece);
    if (this.#sent !== undefined) this.#keep(this.#sent, piece);
    if (this.owner.pace === undefined) return origin.sendData(piece);
    this.sendPaced(origin, piece, this.owner.pace.up);
  }

  protected writeFiltered(piece: Buffer): boolean {
    this.owner.onRequestFiltered(piece);
    this.write(piece);
    return this.#origin !== undefined && this.hasRoom(this.#origin);
  }

  #keep(sent: Buffer[], piece: Buffer): void {
    this.#sentBytes += piece.length;
    if (this.#sentBytes > REPEATED_BODY_BYTES) this.#sent = undefined;
    else sent.push(piece);
  }
}

/** The client's connection as the target of one response. */
export interface ResponseWriter extends BodyWriter {
  /**
   * Writes the response head and returns its size in bytes.
   * @param framing  of the body as the client will receive it
   * @throws Http1Error for a field that cannot be written
   */
  sendHead(response: Readonly<ResponseMessage>, framing: Framing): number;
  sendEnd(trailers: RawFields | undefined): void;
}

interface ResponseOwner extends SenderOwner {
  readonly pace: ThrottledPace | undefined;
  /** A piece of the response body passed its filter. */
  onResponseFiltered(piece: Buffer): void;
  /** A filter or the bandwidth limiter released response bytes. */
  onResponseMoved(): void;
}

/**
 * Sends one response to the client: buffers its body while rules decide, then writes it through the bandwidth limiter.
 */
export class ResponseSender extends MessageSender<ResponseOwner> {
  readonly #client: ResponseWriter;
  /** The client's method; rules may have changed the one sent upstream. */
  readonly #method: string;
  #hasStarted = false;
  #hidesBody = false;

  constructor(client: ResponseWriter, method: string, owner: ResponseOwner) {
    super(NO_BODY, owner);
    this.#client = client;
    this.#method = method;
  }

  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  /** Makes `body` the whole body; a pending `content` promise resolves as gone. */
  replaceAll(body: Buffer): void {
    this.reset();
    this.isComplete = true;
    this.replace(body);
  }

  /** Whether a response with this status has a body for this client. */
  showsBody(status: number): boolean {
    return this.#method !== "HEAD" && status !== 204 && status !== 304;
  }

  /** Writes the head and the buffered body. Throws Http1Error for an unwritable field. */
  start(response: ResponseMessage): void {
    this.#hidesBody = !this.showsBody(response.status);
    const shown = this.framing.kind === "none" ? lengthFraming(0) : this.framing;
    const headBytes = this.#client.sendHead(response, this.#hidesBody ? NO_BODY : shown);
    this.#hasStarted = true;
    this.owner.pace?.down.charge(headBytes);
    if (this.#hidesBody) this.heldBody?.take();
    else this.sendHeld();
  }

  /** False: the piece was buffered and nothing awaits more, so reading may pause. */
  add(piece: Buffer): boolean {
    if (!this.#hasStarted) return this.held.add(piece);
    if (this.filter === undefined) this.write(piece);
    else this.filter.add(piece);
    return this.wantsMore;
  }

  complete(): void {
    this.isComplete = true;
    this.filter?.end();
    if (!this.#hasStarted) this.held.end();
  }

  /** The whole body was written, but not its end. */
  get isReadyToEnd(): boolean {
    return this.isComplete && this.#hasStarted && this.hasPassedQueues;
  }

  /** Writes the end. Trailers that cannot be written are dropped (RFC 9110, 6.5.1), as the body is complete. */
  end(trailers: RawFields | undefined): void {
    try {
      this.#client.sendEnd(trailers);
    } catch (error) {
      if (!(error instanceof Http1Error) || trailers === undefined) throw error;
      this.#client.sendEnd(undefined);
    }
  }

  protected moved(): void {
    this.owner.onResponseMoved();
  }

  protected write(piece: Buffer): void {
    if (this.#hidesBody) return;
    if (this.owner.pace === undefined) return this.#client.sendData(piece);
    this.sendPaced(this.#client, piece, this.owner.pace.down);
  }

  protected writeFiltered(piece: Buffer): boolean {
    this.owner.onResponseFiltered(piece);
    this.write(piece);
    return this.hasRoom(this.#client);
  }
}
