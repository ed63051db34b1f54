import { Http1Error, lengthFraming, NO_BODY } from "@headworks/http1";
import type { Framing, RawFields } from "@headworks/http1";
import type { ResponseMessage } from "#exchange/exchange.ts";
import type { ExchangeClient } from "./exchange-client.ts";
import type { ThrottledStream, BandwidthLimiter, ThrottledPace } from "#exchange/bandwidth-limiter.ts";
import { HeldBody } from "./held-body.ts";

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
  readonly #client: ExchangeClient;
  /** The client's method; rules may have changed the one sent upstream. */
  readonly #method: string;
  #hasStarted = false;
  #held: HeldBody | undefined;
  #isComplete = false;
  #hidesBody = false;
  readonly #owner: ResponseOwner;
  #flow: ThrottledStream | undefined;

  constructor(client: ExchangeClient, method: string, owner: ResponseOwner) {
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
