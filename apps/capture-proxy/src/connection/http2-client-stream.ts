// Tested by ../../test/http2-exchanges.test.ts
import type { ServerHttp2Stream } from "node:http2";
import { gatheredHttp2Fields, reasonPhrase, withoutPseudoFields } from "@headworks/http-fields";
import { allowedTrailers, fieldValue, hasBody, hasField, Http1Error, NO_BODY } from "@headworks/http1";
import type { Framing, RawFields } from "@headworks/http1";
import { NOWHERE, noteGarbage, UnreadBody } from "@headworks/sockets";
import type { ByteSocket, ConnectionWindow, Timed } from "@headworks/sockets";
import type { ClientFacts, RequestMessage, ResponseMessage } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { CANCEL, INTERNAL_ERROR, NO_ERROR } from "#upstream/http2-codes.ts";
import { streamSocket } from "#upstream/stream-socket.ts";
import { CLIENT_GONE, internalFailure, stalled } from "./client-failures.ts";
import type { ClientOrigins } from "./client-origins.ts";
import type { ExchangeClient, ReceivedHead } from "./exchange-client.ts";
import { failureResponse } from "./failure-page.ts";
import { answerSection, switchSection } from "./http2-answer.ts";
import { SEND_BUFFER_BYTES, SURPLUS_BODY_MS } from "./http2-limits.ts";
import { HttpExchange } from "./http-exchange.ts";
import type { ProxyServices } from "./proxy-services.ts";
import { relay } from "./relay.ts";
import type { ExchangePlan } from "./request-plan.ts";
import { streamClient } from "./tunnel-client.ts";
import type { ConnectionHandle, TunnelClient } from "./tunnel-client.ts";

const NOTHING = Buffer.alloc(0);

/** What a stream needs of the connection that carries it. */
export interface StreamOwner {
  readonly services: ProxyServices;
  readonly facts: ClientFacts;
  readonly origins: ClientOrigins;
  /** What may wait unread of all its bodies. */
  readonly window: ConnectionWindow;
  /** It is over; `isWasted`: somebody ended it before its answer was taken. */
  closed(stream: Http2ClientStream, isWasted: boolean): void;
}

/** One request of a client over HTTP/2. */
export class Http2ClientStream implements ExchangeClient, Timed {
  rosterPlace = NOWHERE;
  deadlineMs: number;
  readonly services: ProxyServices;
  readonly facts: ClientFacts;
  readonly origins: ClientOrigins;
  readonly #stream: ServerHttp2Stream;
  readonly #owner: StreamOwner;
  #exchange: HttpExchange | undefined;
  /** The last piece of the answer, so that the end can travel with it. */
  #piece: Buffer | undefined;
  #trailers: RawFields | undefined;
  #expectsContinue = false;
  #isStarted = false;
  #isBodiless = false;
  #isAnswered = false;
  #isWasted = false;
  #isBodyEnded = false;
  #isTunnel = false;
  #tunnel: ConnectionHandle | undefined;
  #bodyTrailers: RawFields | undefined;
  #unread: UnreadBody | undefined;

  constructor(owner: StreamOwner, stream: ServerHttp2Stream) {
    this.#owner = owner;
    this.services = owner.services;
    this.facts = owner.facts;
    this.origins = owner.origins;
    this.#stream = stream;
    this.deadlineMs = performance.now() + this.services.policy().idleTimeoutMs;
    this.services.deadlines.add(this);
    stream.on("error", ignoreError);
    stream.on("aborted", this.#onGone);
    stream.on("close", this.#onClose);
    stream.on("drain", this.#onDrain);
    // They are told when they come, which may be before the body is read.
    stream.on("trailers", (_headers: unknown, _flags: unknown, section: RawFields) => {
      this.#bodyTrailers = allowedTrailers(withoutPseudoFields(section));
    });
  }

  /** Begins the exchange of a request whose head was read. */
  begin(head: ReceivedHead, request: RequestMessage, plan: ExchangePlan): void {
    this.#expectsContinue = fieldValue(head.fields, "expect")?.toLowerCase() === "100-continue";
    const exchange = new HttpExchange(this, head, request, plan);
    this.#exchange = exchange;
    const hasBytes = head.upgrade !== undefined || hasBody(head.framing);
    if (hasBytes) this.#unread = new UnreadBody(this.#stream, this.#owner.window);
    exchange.start();
    // Answered at once: what still comes is dropped already.
    if (this.#exchange === undefined) return;
    const stream = this.#stream;
    if (head.upgrade !== undefined) {
      // What follows is no body, but belongs to the protocol that is to begin.
      this.#exchange?.onRequestEnd();
    } else if (hasBody(head.framing)) {
      stream.on("data", this.#onData);
      stream.on("end", this.#onEnd);
    } else {
      this.#isBodyEnded = true;
      // Its end must be read, or the stream stays open.
      stream.resume();
      this.#exchange?.onRequestEnd();
    }
    this.#exchange?.onRequestBatch();
  }

  /** Answers a request that never became an exchange. */
  refuse(status: number, failure: Failure, method: string, fields: RawFields): void {
    const page = failureResponse(failure, fields);
    const response: ResponseMessage = {
      status,
      reason: reasonPhrase(status),
      version: "HTTP/2",
      fields: page.fields,
      trailers: undefined,
    };
    const isHidden = method === "HEAD";
    this.sendHead(response, isHidden ? NO_BODY : { kind: "length", lengthBytes: page.body.length });
    if (!isHidden) this.sendData(page.body);
    this.sendEnd(undefined);
    this.exchangeEnded();
  }

  /** From now on it is a tunnel's, whose end is its owner's business. */
  becomeTunnel(open: (client: TunnelClient) => ConnectionHandle | undefined): void {
    this.#isStarted = true;
    this.#isAnswered = true;
    this.services.deadlines.delete(this);
    this.#stream.off("drain", this.#onDrain);
    this.#isTunnel = true;
    this.#unread = new UnreadBody(this.#stream, this.#owner.window);
    this.#unread.follow(this.#stream);
    this.#tunnel = open(streamClient(this.#stream));
  }

  /** A tunnel takes no more requests. */
  drain(): void {
    this.#tunnel?.drain();
  }

  /** Ends it at once, whatever goes on. */
  abort(failure: Failure): void {
    this.#tunnel?.abort(failure);
    this.#exchange?.fail(failure);
    this.#reset(CANCEL);
  }

  /** Some of its answer waits for the client's window. */
  get isBlocked(): boolean {
    return this.#stream.writableLength > 0;
  }

  get mayAnswer(): boolean {
    return this.#exchange !== undefined && !this.#isStarted && !this.#isClosed;
  }

  touch(): void {
    this.deadlineMs = performance.now() + this.services.policy().idleTimeoutMs;
  }

  holdReading(): void {
    if (!this.#isBodyEnded) this.#stream.pause();
  }

  releaseReading(): void {
    if (!this.#isBodyEnded) this.#stream.resume();
  }

  askForBody(): void {
    if (!this.#expectsContinue || !this.mayAnswer) return;
    this.#expectsContinue = false;
    this.#stream.additionalHeaders({ ":status": 100 });
  }

  sendInformational(status: number, _reason: string, fields: RawFields): void {
    // 101 does not exist here (RFC 9113, 8.6).
    if (status === 101 || !this.mayAnswer) return;
    if (status === 100) return this.askForBody();
    this.#stream.additionalHeaders(Object.assign(gatheredHttp2Fields(fields), { ":status": status }));
  }

  sendHead(response: Readonly<ResponseMessage>, framing: Framing): number {
    const { status } = response;
    const section = answerSection(response, framing);
    let sizeBytes = 0;
    for (const part of section) sizeBytes += part.length;
    this.#isStarted = true;
    const isEmpty = framing.kind === "none" || (framing.kind === "length" && framing.lengthBytes === 0);
    this.#isBodiless = isEmpty || status === 205;
    if (this.#isClosed) return sizeBytes;
    const waitForTrailers = !this.#isBodiless && (framing.kind !== "length" || hasField(response.fields, "trailer"));
    if (waitForTrailers) this.#stream.on("wantTrailers", this.#onWantTrailers);
    try {
      this.#respond(section, { endStream: this.#isBodiless, waitForTrailers });
    } catch {
      throw new Http1Error("unsafe-text");
    }
    return sizeBytes;
  }

  sendData(piece: Buffer): void {
    if (this.#isBodiless || this.#isClosed) return;
    this.#write();
    this.#piece = piece;
  }

  sendEnd(trailers: RawFields | undefined): void {
    this.#trailers = trailers;
    const piece = this.#piece;
    this.#piece = undefined;
    if (this.#isBodiless || this.#isClosed) return;
    if (piece === undefined) this.#stream.end();
    else this.#stream.end(piece);
  }

  flush(): boolean {
    this.#write();
    const stream = this.#stream;
    return !stream.writableNeedDrain || stream.writableLength < SEND_BUFFER_BYTES;
  }

  exchangeEnded(): void {
    this.#exchange = undefined;
    this.#isAnswered = true;
    this.touch();
    if (this.#isBodyEnded || this.#stream.readableEnded) return;
    // A reset at once could overtake the trailers, so what still comes is dropped for a while.
    this.#stream.off("data", this.#onData);
    this.#unread?.forget();
    this.#stream.on("end", () => (this.#isBodyEnded = true));
    this.#stream.resume();
    this.deadlineMs = performance.now() + SURPLUS_BODY_MS;
  }

  exchangeBroken(failure: Failure): void {
    this.#exchange = undefined;
    this.#isAnswered = true;
    const code = failure.resetCode ?? (failure.side === "client" ? CANCEL : INTERNAL_ERROR);
    if (failure.side === "upstream") this.#write();
    this.#piece = undefined;
    if (failure.side !== "upstream" || this.#isClosed || !this.isBlocked) return this.#reset(code);
    // What came of the answer before its origin broke it off is the client's; a reset at once would overtake it.
    this.touch();
    // Not in the callback itself: what ends the stream then goes out with the bytes, ahead of the reset.
    this.#stream.write(NOTHING, () => setImmediate(() => this.#reset(code)));
  }

  switchProtocols(
    origin: { readonly socket: ByteSocket; readonly bytes: Buffer | undefined },
    exchange: HttpExchange,
  ): void {
    const stream = this.#stream;
    this.#exchange = undefined;
    this.#isStarted = true;
    this.#isAnswered = true;
    this.services.deadlines.delete(this);
    stream.off("drain", this.#onDrain);
    const section = switchSection(exchange.response?.fields ?? []);
    if (!this.#isClosed) this.#respond(section, { endStream: false, waitForTrailers: false });
    this.#unread?.follow(stream);
    relay({
      client: streamSocket(stream),
      upstream: origin.socket,
      fromClient: undefined,
      fromUpstream: origin.bytes,
      counts: exchange,
      services: this.services,
      onEnd: (failure) => exchange.tunnelEnded(failure),
    });
  }

  onDeadline(): void {
    const stream = this.#stream;
    const exchange = this.#exchange;
    if (exchange === undefined) {
      // The client may stop sending a body that nobody reads any more (RFC 9113, 8.1).
      const isSurplus = this.#isAnswered && !this.#isBodyEnded && stream.writableFinished;
      return stream.close(isSurplus ? NO_ERROR : CANCEL);
    }
    this.touch();
    if (exchange.isDeciding) return;
    const { idleTimeoutMs } = this.services.policy();
    const isAwaited = exchange.isReceiving && !stream.isPaused();
    // Bodies that nobody reads may have kept it from sending this one.
    if (isAwaited && performance.now() - this.#owner.window.freeSinceMs < idleTimeoutMs) return;
    const waitsFor = this.#isStarted && this.isBlocked ? "answer-taken" : isAwaited ? "body" : "origin";
    exchange.fail(stalled(exchange, waitsFor, idleTimeoutMs));
  }

  get #isClosed(): boolean {
    return this.#stream.closed || this.#stream.destroyed;
  }

  /**
   * Closing ends the writing side first, which would look like the end of the answer; a write that is under way holds
   * that up until the reset is out.
   */
  #reset(code: number): void {
    const stream = this.#stream;
    if (this.#isClosed) return;
    if (this.#isStarted && !stream.writableEnded) stream.write(NOTHING);
    stream.close(code);
  }

  #respond(section: string[], options: { readonly endStream: boolean; readonly waitForTrailers: boolean }): void {
    // An answer has a Date when its origin gave it one. The option is missing in node's types.
    const withoutDate = { ...options, sendDate: false };
    this.#stream.respond(section, withoutDate);
  }

  #write(): void {
    const piece = this.#piece;
    if (piece === undefined) return;
    this.#piece = undefined;
    if (!this.#isClosed) this.#stream.write(piece);
  }

  readonly #onData = (piece: Buffer): void => {
    noteGarbage(piece.length);
    this.#unread?.read(piece.length);
    this.touch();
    this.#expectsContinue = false;
    try {
      this.#exchange?.onRequestData(piece);
      this.#exchange?.onRequestBatch();
    } catch (error) {
      this.#broken(error);
    }
  };

  readonly #onEnd = (): void => {
    // A reset without an error ends the reading side too, in the middle of a body.
    if (this.#stream.aborted) return this.#onGone();
    this.#isBodyEnded = true;
    this.touch();
    try {
      if (this.#bodyTrailers !== undefined) this.#exchange?.onRequestTrailers(this.#bodyTrailers);
      this.#exchange?.onRequestEnd();
      this.#exchange?.onRequestBatch();
    } catch (error) {
      this.#broken(error);
    }
  };

  readonly #onDrain = (): void => {
    this.touch();
    this.#exchange?.onClientDrain();
  };

  readonly #onWantTrailers = (): void => {
    if (!this.#isClosed) this.#stream.sendTrailers(gatheredHttp2Fields(this.#trailers ?? []));
  };

  /** A defect of ours ends this stream, not the process. */
  #broken(error: unknown): void {
    this.services.log.error({ err: error }, "A stream of a client failed");
    this.abort(internalFailure(error));
  }

  readonly #onGone = (): void => {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#isWasted = true;
    this.#piece = undefined;
    const exchange = this.#exchange;
    this.#exchange = undefined;
    const { rstCode } = this.#stream;
    exchange?.fail(
      rstCode === undefined || rstCode === NO_ERROR ? CLIENT_GONE : { ...CLIENT_GONE, resetCode: rstCode },
    );
  };

  readonly #onClose = (): void => {
    this.services.deadlines.delete(this);
    this.#unread?.forget();
    this.#onGone();
    // Opening tunnels and leaving them costs as much.
    if (this.#isTunnel && this.#stream.rstCode !== NO_ERROR) this.#isWasted = true;
    // An answer that the client did not take to its end was work for nothing as well.
    this.#owner.closed(this, this.#isWasted);
  };
}

function ignoreError(): void {
  // "close" follows and does what is needed.
}
