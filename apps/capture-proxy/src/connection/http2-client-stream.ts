import { appendHttp2Fields, reasonPhrase, withoutPseudoFields } from "@headworks/http-fields";
import {
  allowedTrailers,
  fieldValue,
  type Framing,
  hasBody,
  Http1Error,
  lengthFraming,
  NO_BODY,
  type RawFields,
  removeField,
  setFraming,
  withoutHopByHop,
} from "@headworks/http1";
import {
  CANCEL,
  CONNECT_ERROR,
  type Http2Stream,
  INTERNAL_ERROR,
  isSendable,
  NO_ERROR,
  type StreamHandler,
  StreamSocket,
} from "@headworks/http2";
import { type ByteSocket, NOT_IN_SET, type SetMember, type Timed } from "@headworks/sockets";
import type { ClientFacts, RequestMessage, ResponseMessage } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { CLIENT_GONE, failureResponse, internalFailure, stalled } from "./client-failures.ts";
import { type ExchangeClient, HttpExchange } from "./http-exchange.ts";
import type { ExchangePlan, ReceivedHead } from "./request-plan.ts";
import type { ProxyServices } from "./proxy-services.ts";
import { relay } from "./relay.ts";
import type { ConnectionHandle, TunnelClient } from "./tunnel-exchange.ts";
import type { UpstreamConnections } from "./upstream-connections.ts";

/** Response bytes buffered for the client's window before the origin is paused. */
const SEND_BUFFER_BYTES = 131_072;
/** How long a client may continue with a body after its response is complete before the stream is reset. */
const SURPLUS_BODY_MS = 1000;

export interface StreamOwner {
  readonly services: ProxyServices;
  readonly facts: ClientFacts;
  readonly origins: UpstreamConnections;
  /** `isWasted`: the stream was reset before its response was complete. */
  closed(stream: Http2ClientStream, isWasted: boolean): void;
}

/** Membership in the connection's set; the deadline sweep uses the stream's own index. */
export interface StreamMember extends SetMember {
  readonly stream: Http2ClientStream;
}

/** One request of an HTTP/2 client. */
export class Http2ClientStream implements ExchangeClient, StreamHandler, Timed {
  setIndex = NOT_IN_SET;
  deadlineMs: number;
  readonly services: ProxyServices;
  readonly facts: ClientFacts;
  readonly origins: UpstreamConnections;
  readonly member: StreamMember = { setIndex: NOT_IN_SET, stream: this };
  readonly #stream: Http2Stream;
  readonly #owner: StreamOwner;
  #exchange: HttpExchange | undefined;
  #expectsContinue = false;
  #isStarted = false;
  #isBodiless = false;
  #hasResponded = false;
  #isWasted = false;
  #isBodyEnded = false;
  #tunnel: ConnectionHandle | undefined;

  constructor(owner: StreamOwner, stream: Http2Stream) {
    this.#owner = owner;
    this.services = owner.services;
    this.facts = owner.facts;
    this.origins = owner.origins;
    this.#stream = stream;
    this.deadlineMs = performance.now() + this.services.policy().idleTimeoutMs;
    this.services.deadlines.add(this);
    stream.handler = this;
  }

  begin(head: ReceivedHead, request: RequestMessage, plan: ExchangePlan): void {
    const { framing, upgrade } = head;
    this.#expectsContinue = fieldValue(head.fields, "expect")?.toLowerCase() === "100-continue";
    if (framing.kind === "length") this.#stream.announce(framing.lengthBytes);
    const exchange = new HttpExchange(this, head, request, plan);
    this.#exchange = exchange;
    this.#isBodyEnded = upgrade === undefined && !hasBody(framing);
    // What follows belongs to the new protocol, not to a body.
    if (upgrade !== undefined) this.#stream.hold();
    exchange.start();
    if (upgrade !== undefined || this.#isBodyEnded) this.#exchange?.onRequestEnd();
    this.#exchange?.onRequestBatch();
  }

  /** Responds to a request that never became an exchange. */
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

  /** Turns the stream into a tunnel, which then controls its end. */
  becomeTunnel(open: (client: TunnelClient) => ConnectionHandle | undefined): void {
    this.#isStarted = true;
    this.#hasResponded = true;
    this.services.deadlines.delete(this);
    const client = streamClient(this.#stream);
    client.socket.once("close", () => {
      // A tunnel that is opened and abandoned counts as a reset like any request.
      this.#owner.closed(this, this.#stream.closeCode !== NO_ERROR);
    });
    this.#tunnel = open(client);
  }

  drain(): void {
    this.#tunnel?.drain();
  }

  abort(failure: Failure): void {
    this.#tunnel?.abort(failure);
    this.#exchange?.fail(failure);
    this.#stream.reset(CANCEL);
  }

  /** Response bytes are waiting for the client's window. */
  get isBlocked(): boolean {
    return this.#stream.waitingBytes > 0;
  }

  get mayRespond(): boolean {
    return this.#exchange !== undefined && !this.#isStarted && !this.#stream.isClosed;
  }

  touch(): void {
    this.deadlineMs =
      performance.now() + (this.#isBodySurplus ? SURPLUS_BODY_MS : this.services.policy().idleTimeoutMs);
  }

  /** The response is written completely, but a body that is no longer read still arrives. */
  get #isBodySurplus(): boolean {
    return this.#exchange === undefined && this.#hasResponded && !this.#isBodyEnded && this.#stream.hasSentEnd;
  }

  holdReading(): void {
    this.#stream.hold();
  }

  releaseReading(): void {
    this.#stream.release();
  }

  sendContinue(): void {
    if (!this.#expectsContinue || !this.mayRespond) return;
    this.#expectsContinue = false;
    this.#stream.sendSection([":status", "100"], false);
  }

  sendInformational(status: number, _reason: string, fields: RawFields): void {
    // HTTP/2 has no 101 (RFC 9113, 8.6).
    if (status === 101 || !this.mayRespond) return;
    if (status === 100) return this.sendContinue();
    const section = [":status", String(status)];
    appendHttp2Fields(fields, section);
    if (isSendable(section)) this.#stream.sendSection(section, false);
  }

  sendHead(response: Readonly<ResponseMessage>, framing: Framing): number {
    const { status } = response;
    const section = responseSection(response, framing);
    let sizeBytes = 0;
    for (const part of section) sizeBytes += part.length;
    if (!isSendable(section)) throw new Http1Error("unsafe-text");
    this.#isStarted = true;
    const isEmpty = framing.kind === "none" || (framing.kind === "length" && framing.lengthBytes === 0);
    this.#isBodiless = isEmpty || status === 205;
    this.#stream.sendSection(section, this.#isBodiless);
    return sizeBytes;
  }

  sendData(piece: Buffer): void {
    if (!this.#isBodiless) this.#stream.write(piece);
  }

  sendEnd(trailers: RawFields | undefined): void {
    if (this.#isBodiless) return;
    const section: string[] = [];
    if (trailers !== undefined) appendHttp2Fields(trailers, section);
    if (!isSendable(section)) throw new Http1Error("unsafe-text");
    this.#stream.end(section);
  }

  flush(): boolean {
    return this.#stream.hasRoom(SEND_BUFFER_BYTES);
  }

  exchangeEnded(): void {
    this.#exchange = undefined;
    this.#hasResponded = true;
    // An immediate reset could overtake the trailers, so the rest of the body is discarded for a while.
    this.touch();
    if (this.#isBodyEnded) return;
    // Starts that delay once the buffered response is sent.
    this.#stream.hasRoom(1);
    this.#stream.release();
  }

  exchangeBroken(failure: Failure): void {
    this.#exchange = undefined;
    this.#hasResponded = true;
    const code = failure.resetCode ?? (failure.side === "client" ? CANCEL : INTERNAL_ERROR);
    if (failure.side !== "upstream") return this.#stream.reset(code);
    // The part of the response received before the origin broke off is delivered.
    this.touch();
    this.#stream.resetAfterQueue(code);
  }

  switchProtocols(
    origin: { readonly socket: ByteSocket; readonly bytes: Buffer | undefined },
    exchange: HttpExchange,
  ): void {
    this.#exchange = undefined;
    this.#isStarted = true;
    this.#hasResponded = true;
    this.services.deadlines.delete(this);
    this.#stream.sendSection(switchSection(exchange.response?.fields ?? []), false);
    const client = new StreamSocket(this.#stream);
    client.once("close", () => this.#owner.closed(this, false));
    relay({
      client,
      upstream: origin.socket,
      fromClient: undefined,
      fromUpstream: origin.bytes,
      counts: exchange,
      services: this.services,
      onEnd: (failure) => exchange.tunnelEnded(failure),
    });
    this.#stream.release();
  }

  onDeadline(): void {
    const stream = this.#stream;
    const exchange = this.#exchange;
    if (exchange === undefined) {
      // Tells the client to stop sending a body that is no longer read (RFC 9113, 8.1).
      return stream.reset(this.#isBodySurplus ? NO_ERROR : CANCEL);
    }
    this.touch();
    if (exchange.isDeciding) return;
    const { idleTimeoutMs } = this.services.policy();
    const isAwaited = exchange.isReceiving && !stream.isHeld && !this.#expectsContinue;
    const waitsFor = this.#isStarted && this.isBlocked ? "response-read" : isAwaited ? "body" : "origin";
    exchange.fail(stalled(exchange.request.host, waitsFor, idleTimeoutMs));
  }

  onSection(): void {
    // The head was read before the stream existed, so these can only be trailers.
  }

  onData(piece: Buffer): void {
    const exchange = this.#exchange;
    if (exchange === undefined) return;
    this.touch();
    this.#expectsContinue = false;
    try {
      exchange.onRequestData(piece);
      exchange.onRequestBatch();
    } catch (error) {
      this.#broken(error);
    }
  }

  onTrailers(section: RawFields): void {
    try {
      this.#exchange?.onRequestTrailers(allowedTrailers(withoutPseudoFields(section)));
    } catch (error) {
      this.#broken(error);
    }
  }

  onEnd(): void {
    this.#isBodyEnded = true;
    if (this.#exchange === undefined) return;
    this.touch();
    try {
      this.#exchange.onRequestEnd();
      this.#exchange?.onRequestBatch();
    } catch (error) {
      this.#broken(error);
    }
  }

  onDrain(): void {
    this.touch();
    this.#exchange?.onClientDrain();
  }

  onClose(code: number): void {
    this.services.deadlines.delete(this);
    const isComplete = this.#stream.hasSentEnd && code === NO_ERROR;
    if (!isComplete) this.#gone(code);
    this.#owner.closed(this, this.#isWasted);
  }

  /** A bug in the proxy ends this stream, not the process. */
  #broken(error: unknown): void {
    this.services.log.error({ err: error }, "A stream of a client failed");
    this.abort(internalFailure(error));
  }

  #gone(code: number): void {
    if (this.#hasResponded) return;
    this.#hasResponded = true;
    this.#isWasted = true;
    const exchange = this.#exchange;
    this.#exchange = undefined;
    exchange?.fail(code === NO_ERROR ? CLIENT_GONE : { ...CLIENT_GONE, resetCode: code });
  }
}

const KEPT: ReadonlySet<string> = new Set(["trailer"]);

/** The field section of a response, `:status` first. */
function responseSection({ status, fields }: Readonly<ResponseMessage>, framing: Framing): string[] {
  const forwarded = withoutHopByHop(fields, { keep: KEPT });
  setFraming(forwarded, framing);
  // RFC 9110, 8.6 and 15.3.6: neither status has a body.
  if (status === 204 || status === 205) removeField(forwarded, "content-length");
  const section = [":status", String(status)];
  appendHttp2Fields(forwarded, section);
  return section;
}

/** The section that accepts a WebSocket: 200 without Sec-WebSocket-Accept (RFC 8441, 5). */
function switchSection(fields: Readonly<RawFields>): string[] {
  const forwarded = withoutHopByHop(fields);
  removeField(forwarded, "sec-websocket-accept");
  const section = [":status", "200"];
  appendHttp2Fields(forwarded, section);
  return section;
}

/** An HTTP/2 stream (RFC 9113, 8.5); its reset ends the tunnel. */
function streamClient(stream: Http2Stream): TunnelClient {
  const socket = new StreamSocket(stream, { resetCode: CONNECT_ERROR, resetsAreErrors: true });
  return {
    socket,
    version: "HTTP/2",
    accept: () => stream.sendSection([":status", "200"], false),
    refuse: ({ status, reason = "", fields, body }) => {
      const response = { status, reason, version: "HTTP/2", fields, trailers: undefined } as const;
      stream.sendSection(responseSection(response, lengthFraming(body.length)), false);
      socket.end(body);
      socket.destroySoon();
      // Further input is discarded.
      socket.resume();
    },
  };
}
