import { Http1Error, lengthFraming, NO_BODY } from "@headworks/http1";
import type { Framing, RawFields } from "@headworks/http1";
import type { ResponseMessage } from "#exchange/exchange.ts";
import type { ExchangeClient } from "./exchange-client.ts";
import type { ThrottledStream, BandwidthLimiter, ThrottledPace } from "#exchange/bandwidth-limiter.ts";
import { HeldBody } from "./held-body.ts";

/** The exchange whose answer it is. */
interface ResponseOwner {
  readonly pace: ThrottledPace | undefined;
  /** Bytes of a limited answer left: more may be wanted, or its end may be due. */
  onResponseMoved(): void;
}

/**
 * One answer on its way to the client: its body is held while rules decide, then written as the client expects it, as
 * fast as its line allows.
 */
export class ResponseSender {
  /** How the body comes, or is framed since it was replaced. */
  framing: Framing = NO_BODY;
  readonly #client: ExchangeClient;
  /** What the client asked; rules may have asked the origin something else. */
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

  /** The head was written. */
  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  get isWaitedFor(): boolean {
    return this.#held?.isWanted === true;
  }

  /** The body as far as it came before the head was written. */
  get held(): HeldBody {
    return (this.#held ??= new HeldBody(this.framing, this.#isComplete));
  }

  /** `body` is the whole body from now on; whoever waits for another one is told that it is gone. */
  replaceAll(body: Buffer): void {
    this.abandon();
    this.#held = undefined;
    this.#isComplete = true;
    this.replace(body);
  }

  /** Replaces a body that was waited for. */
  replace(body: Buffer): void {
    this.held.replace(body);
    this.framing = this.held.framing;
  }

  /** Whether the client gets a body behind this status. */
  showsBody(status: number): boolean {
    return this.#method !== "HEAD" && status !== 204 && status !== 304;
  }

  /**
   * Writes the head, and what is there of the body.
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

  /** A piece of the body came. False: it is held and nobody waits for more. */
  add(piece: Buffer): boolean {
    if (!this.#hasStarted) return this.held.add(piece);
    this.#write(piece);
    return this.wantsMore;
  }

  /** Its line, if it has one, has little left to carry. */
  get wantsMore(): boolean {
    return this.#flow === undefined || this.#flow.isLow;
  }

  /** The client takes bytes again. */
  resume(): void {
    this.#flow?.resume();
  }

  /** The body is complete. */
  complete(): void {
    this.#isComplete = true;
    if (!this.#hasStarted) this.held.end();
  }

  /** Whether all of it was written but the end. */
  get isReadyToEnd(): boolean {
    return this.#isComplete && this.#hasStarted && (this.#flow === undefined || this.#flow.isEmpty);
  }

  /** Writes the end. Trailers that cannot be written are left out, as they may be (RFC 9110, 6.5.1): the body was whole. */
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
