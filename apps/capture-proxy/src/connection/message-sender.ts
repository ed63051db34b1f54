import { type Framing, hasBody, Http1Error, lengthFraming, NO_BODY, type RawFields } from "@headworks/http1";
import type { BandwidthLimiter, ThrottledPace, ThrottledStream } from "#exchange/bandwidth-limiter.ts";
import type { Content, ResponseMessage } from "#exchange/exchange.ts";
import type { Origin, OriginRequest, ResponseHandler } from "#upstream/origin.ts";

const TOO_LARGE: Content = { kind: "too-large" };
const GONE: Content = { kind: "gone" };

interface Waiter {
  readonly limitBytes: number;
  readonly tell: (content: Content) => void;
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

  /**
   * Resolves when the body is complete, exceeds `limitBytes`, or will not arrive. `onWanted` is called when more of it
   * must be read.
   */
  content(limitBytes: number, isFinished: boolean, onWanted: () => void): Promise<Content> {
    if (isFinished) return Promise.resolve(GONE);
    if (this.#sizeBytes > limitBytes) return Promise.resolve(TOO_LARGE);
    if (this.#isComplete) return Promise.resolve({ kind: "complete", bytes: this.joined() });
    if (isKnownLonger(this.framing, limitBytes)) return Promise.resolve(TOO_LARGE);
    return new Promise((tell) => {
      this.#waiting.push({ limitBytes, tell });
      onWanted();
    });
  }

  /**
   * Buffers a piece. False: no promise is pending, so reading may pause. A body over the limit resolves the pending
   * promise as too large.
   */
  add(piece: Buffer): boolean {
    this.#pieces.push(piece);
    this.#sizeBytes += piece.length;
    if (this.#waiting.length > 0) this.#tell(TOO_LARGE, ({ limitBytes }) => this.#sizeBytes > limitBytes);
    return this.isWanted;
  }

  end(): void {
    this.#isComplete = true;
    if (this.isWanted) this.#tell({ kind: "complete", bytes: this.joined() });
  }

  /** The exchange is over: resolves what is pending. */
  abandon(): void {
    this.#pieces = [];
    this.#tell(GONE);
  }

  /**
   * Replaces the body.
   * @throws TypeError while more of the original body is still expected
   */
  replace(bytes: Buffer): void {
    if (!this.#isComplete) throw new TypeError("A body is replaced after it was waited for");
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

  /** Removes and returns the buffered pieces. */
  take(): readonly Buffer[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#sizeBytes = 0;
    return pieces;
  }

  #tell(content: Content, concerns: (waiter: Waiter) => boolean = () => true): void {
    const told = this.#waiting.filter(concerns);
    this.#waiting = this.#waiting.filter((waiter) => !told.includes(waiter));
    for (const { tell } of told) tell(content);
  }
}

/** Whether the declared length already exceeds the limit. */
export function isKnownLonger(framing: Framing, limitBytes: number): boolean {
  return framing.kind === "length" && framing.lengthBytes > limitBytes;
}

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

/** The client's connection as the target of one response. */
export interface ResponseWriter {
  /**
   * Writes the response head and returns its size in bytes.
   * @param framing  of the body as the client will receive it
   * @throws Http1Error for a field that cannot be written
   */
  sendHead(response: Readonly<ResponseMessage>, framing: Framing): number;
  sendData(piece: Buffer): void;
  sendEnd(trailers: RawFields | undefined): void;
  /** Flushes buffered writes. False: stop until the client drains. */
  flush(): boolean;
}

interface ResponseOwner {
  readonly pace: ThrottledPace | undefined;
  /** The bandwidth limiter released response bytes. */
  onResponseMoved(): void;
}

/**
 * Sends one response to the client: buffers its body while rules decide, then writes it through the bandwidth limiter.
 */
export class ResponseSender {
  /** Framing as received, or of the replacement. */
  framing: Framing = NO_BODY;
  readonly #client: ResponseWriter;
  /** The client's method; rules may have changed the one sent upstream. */
  readonly #method: string;
  #hasStarted = false;
  #held: HeldBody | undefined;
  #isComplete = false;
  #hidesBody = false;
  readonly #owner: ResponseOwner;
  #flow: ThrottledStream | undefined;

  constructor(client: ResponseWriter, method: string, owner: ResponseOwner) {
    this.#client = client;
    this.#method = method;
    this.#owner = owner;
  }

  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  get isWaitedFor(): boolean {
    return this.#held?.isWanted === true;
  }

  /** The body received before the head was written. */
  get held(): HeldBody {
    return (this.#held ??= new HeldBody(this.framing, this.#isComplete));
  }

  /** Makes `body` the whole body; a pending `content` promise resolves as gone. */
  replaceAll(body: Buffer): void {
    this.abandon();
    this.#held = undefined;
    this.#isComplete = true;
    this.replace(body);
  }

  /** Replaces a body that was awaited. */
  replace(body: Buffer): void {
    this.held.replace(body);
    this.framing = this.held.framing;
  }

  /** Whether a response with this status has a body for this client. */
  showsBody(status: number): boolean {
    return this.#method !== "HEAD" && status !== 204 && status !== 304;
  }

  /**
   * Writes the head and the buffered body.
   * @throws Http1Error for a field that cannot be written
   */
  start(response: ResponseMessage): void {
    this.#hidesBody = !this.showsBody(response.status);
    const shown = this.framing.kind === "none" ? lengthFraming(0) : this.framing;
    const headBytes = this.#client.sendHead(response, this.#hidesBody ? NO_BODY : shown);
    this.#hasStarted = true;
    this.#owner.pace?.down.charge(headBytes);
    if (this.#held) for (const piece of this.#held.take()) this.#write(piece);
  }

  /** False: the piece was buffered and nothing awaits more, so reading may pause. */
  add(piece: Buffer): boolean {
    if (!this.#hasStarted) return this.held.add(piece);
    this.#write(piece);
    return this.wantsMore;
  }

  /** The limiter's queue, if any, is low. */
  get wantsMore(): boolean {
    return this.#flow === undefined || this.#flow.isLow;
  }

  resume(): void {
    this.#flow?.resume();
  }

  complete(): void {
    this.#isComplete = true;
    if (!this.#hasStarted) this.held.end();
  }

  /** The whole body was written, but not its end. */
  get isReadyToEnd(): boolean {
    return this.#isComplete && this.#hasStarted && (this.#flow === undefined || this.#flow.isEmpty);
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

  abandon(): void {
    this.#held?.abandon();
    this.#flow?.close();
  }

  #write(piece: Buffer): void {
    if (this.#hidesBody) return;
    if (this.#owner.pace === undefined) return this.#client.sendData(piece);
    this.#writePaced(piece, this.#owner.pace.down);
  }

  #writePaced(piece: Buffer, line: BandwidthLimiter): void {
    if (this.#flow === undefined && !line.isLimited) {
      line.charge(piece.length);
      return this.#client.sendData(piece);
    }
    this.#flow ??= line.open({
      take: (part) => {
        this.#client.sendData(part);
        return this.#client.flush();
      },
      moved: () => this.#owner.onResponseMoved(),
    });
    this.#flow.add(piece);
  }
}
