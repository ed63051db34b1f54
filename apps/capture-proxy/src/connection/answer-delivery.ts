// Tested by ../../test/engine-content.test.ts
import {
  LAST_CHUNK,
  lastChunkWithTrailers,
  lengthFraming,
  NO_BODY,
  removeField,
  responseHeadText,
} from "@headworks/http1";
import type { AnswerStart, DownstreamState, Framing, RawFields } from "@headworks/http1";
import type { BatchedWriter } from "@headworks/sockets";
import type { ResponseMessage } from "#exchange/exchange.ts";
import { answerFields } from "./forwarded-fields.ts";
import type { Flow, Line, Pace } from "#exchange/line.ts";
import { HeldBody } from "./held-body.ts";

/** The exchange whose answer it is. */
interface AnswerOwner {
  readonly pace: Pace | undefined;
  /** Bytes of a limited answer left: more may be wanted, or its end may be due. */
  onAnswerMoved(): void;
}

/**
 * One answer on its way to the client: its body is held while rules decide, then written as the client expects it, as
 * fast as its line allows.
 */
export class AnswerDelivery {
  /** How the body comes, or is framed since it was replaced. */
  framing: Framing = NO_BODY;
  readonly #client: { readonly state: DownstreamState; readonly writer: BatchedWriter };
  /** What the client asked; rules may have asked the origin something else. */
  readonly #method: string;
  #start: AnswerStart | undefined;
  #held: HeldBody | undefined;
  #isComplete = false;
  #hidesBody = false;
  readonly #owner: AnswerOwner;
  #flow: Flow | undefined;

  constructor(
    client: { readonly state: DownstreamState; readonly writer: BatchedWriter },
    method: string,
    owner: AnswerOwner,
  ) {
    this.#client = client;
    this.#method = method;
    this.#owner = owner;
  }

  /** The head was written. */
  get hasStarted(): boolean {
    return this.#start !== undefined;
  }

  /** Only the end of the connection tells the client where the body ends. */
  get endsWithConnection(): boolean {
    return this.#start === undefined || this.#start.framing.kind === "until-close";
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
    const { framing } = this;
    const shown = framing.kind === "none" ? lengthFraming(0) : framing;
    const start = this.#client.state.answerStarted(this.#hidesBody ? NO_BODY : shown);
    this.#start = start;
    const fields = answerFields(response.fields, start);
    // RFC 9110, 8.6: a 204 has no Content-Length, whatever the origin says.
    if (response.status === 204) removeField(fields, "content-length");
    const head = responseHeadText(response.status, response.reason, fields);
    this.#owner.pace?.down.charge(head.length);
    this.#client.writer.text(head);
    if (this.#held) for (const piece of this.#held.take()) this.#write(piece);
  }

  /** A piece of the body came. False: it is held and nobody waits for more. */
  add(piece: Buffer): boolean {
    if (this.#start === undefined) return this.held.add(piece);
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
    if (this.#start === undefined) this.held.end();
  }

  /** Whether all of it was written but the end. */
  get isReadyToEnd(): boolean {
    return this.#isComplete && this.#start !== undefined && (this.#flow === undefined || this.#flow.isEmpty);
  }

  end(trailers: RawFields | undefined): void {
    if (this.#start?.framing.kind !== "chunked") return;
    this.#client.writer.text(trailers ? lastChunkWithTrailers(trailers) : LAST_CHUNK);
  }

  abandon(): void {
    this.#held?.abandon();
    this.#flow?.close();
  }

  #write(piece: Buffer): void {
    if (this.#hidesBody) return;
    if (this.#owner.pace === undefined) return this.#writeNow(piece);
    this.#writePaced(piece, this.#owner.pace.down);
  }

  #writePaced(piece: Buffer, line: Line): void {
    if (this.#flow === undefined && !line.isLimited) {
      line.charge(piece.length);
      return this.#writeNow(piece);
    }
    this.#flow ??= line.open({
      take: (part) => {
        this.#writeNow(part);
        return this.#client.writer.flush();
      },
      moved: () => this.#owner.onAnswerMoved(),
    });
    this.#flow.add(piece);
  }

  #writeNow(piece: Buffer): void {
    if (this.#start?.framing.kind === "chunked") this.#client.writer.chunk(piece);
    else this.#client.writer.bytes(piece);
  }
}
