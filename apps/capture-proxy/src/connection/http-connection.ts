import { parseHostPort } from "@headworks/host-patterns";
import { reasonPhrase } from "@headworks/http-fields";
import {
  areSameFields,
  DownstreamState,
  type FieldLines,
  type Framing,
  type Http1Error,
  LAST_CHUNK,
  lastChunkWithTrailers,
  type RawFields,
  removeField,
  type RequestHead,
  RequestReader,
  responseHeadText,
} from "@headworks/http1";
import { beginsAsHttp2 } from "@headworks/http2";
import {
  BatchedWriter,
  type ByteSocket,
  cutConnection,
  keptBytes,
  Linger,
  NOT_IN_SET,
  ownBytes,
  shareReadBuffer,
  type Timed,
  trackExternalMemory,
} from "@headworks/sockets";
import type { ClientFacts, ResponseMessage } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { CLIENT_GONE, internalFailure, invalidRequest, stalled } from "./client-failures.ts";
import { isForeignToHttp1 } from "./detect.ts";
import type { ClientSocket, ExchangeClient } from "./exchange-client.ts";
import { failureResponse } from "./failure-page.ts";
import { responseFields, switchFields } from "./forwarded-fields.ts";
import { HttpExchange } from "./http-exchange.ts";
import type { ProxyServices } from "./proxy-services.ts";
import { refusedRequest } from "./refused-request.ts";
import { relay } from "./relay.ts";
import { planRequest, type TunnelBase } from "./request-plan.ts";
import { UpstreamConnections } from "./upstream-connections.ts";

/** Writes the answers of one client connection, one after the other, framed as the client can take them. */
class Http1Response {
  readonly #writer: BatchedWriter;
  readonly #state: DownstreamState;
  /** Of the present answer's body; undefined before its head. */
  #framing: Framing | undefined;

  constructor(writer: BatchedWriter, state: DownstreamState) {
    this.#writer = writer;
    this.#state = state;
  }

  /** A client that gets no more than this can tell that something is missing: what was written may still leave. */
  get showsItsEnd(): boolean {
    return this.#framing !== undefined && this.#framing.kind !== "until-close";
  }

  /** Another request was read; nothing of its answer is written yet. */
  begin(): void {
    this.#framing = undefined;
  }

  /**
   * Gives the size of the head in bytes.
   * @throws Http1Error for a field that cannot be written; another answer may be given then
   */
  head(response: Readonly<ResponseMessage>, framing: Framing): number {
    const start = this.#state.responseStarted(framing);
    const fields = responseFields(response.fields, start);
    // RFC 9110, 8.6: a 204 has no Content-Length, whatever the origin says.
    if (response.status === 204) removeField(fields, "content-length");
    const lines = areSameFields(fields, response.fields) ? response.fieldLines : undefined;
    const head = this.#headText(response, fields, lines);
    this.#framing = start.framing;
    this.#writer.text(head);
    return head.length;
  }

  #headText({ status, reason }: Readonly<ResponseMessage>, fields: RawFields, lines: FieldLines | undefined): string {
    try {
      return responseHeadText(status, reason, fields, lines);
    } catch (error) {
      this.#state.responseWithdrawn();
      throw error;
    }
  }

  /** An interim answer, where the client may get one now; false where it may not. */
  informational(status: number, reason: string, fields: RawFields): boolean {
    if (!this.#state.informational(status)) return false;
    this.#writer.text(responseHeadText(status, reason, fields));
    return true;
  }

  /** The whole answer to a request that never became an exchange; the last one of the connection. */
  refusal(status: number, failure: Failure, head: RequestHead | undefined): void {
    const page = failureResponse(failure, head?.fields ?? []);
    this.#state.drain();
    const start = this.#state.responseStarted({ kind: "length", lengthBytes: page.body.length });
    const fields = [...page.fields, "Connection", start.connection ?? "close"];
    this.#writer.text(responseHeadText(status, reasonPhrase(status), fields));
    if (head?.method !== "HEAD") this.#writer.bytes(page.body);
    this.#writer.flush();
    this.#state.responseEnded();
  }

  data(piece: Buffer): void {
    if (this.#framing?.kind === "chunked") this.#writer.chunk(piece);
    else this.#writer.bytes(piece);
  }

  end(trailers: RawFields | undefined): void {
    if (this.#framing?.kind !== "chunked") return;
    this.#writer.text(trailers ? lastChunkWithTrailers(trailers) : LAST_CHUNK);
  }

  /** Gives what was written to the socket; false while the client takes no more. */
  flush(): boolean {
    return this.#writer.flush();
  }
}

/**
 * A client that ended its sending side may still read, or may be gone: TCP does not tell until something is written.
 * After this time without a byte from the origin it counts as gone.
 */
const HALF_CLOSED_MS = 5000;

/** Long enough for an answer from this machine, and for one from far away. */
const ASK_AGAIN_MS: readonly number[] = [50, 500];

/** Reads the Host of requests; on most connections it is the same text each time, which is read once. */
class KnownHost {
  #text: string | undefined;
  #hostPort: { readonly host: string; readonly port: number | undefined } | undefined;

  /** Undefined for a text that is no host, and for none. */
  of(text: string | undefined): { readonly host: string; readonly port: number | undefined } | undefined {
    if (text === undefined) return undefined;
    if (text !== this.#text) {
      const parsed = parseHostPort(text);
      this.#text = text;
      this.#hostPort = "issue" in parsed ? undefined : parsed;
    }
    return this.#hostPort;
  }
}

/** An idle client of a service that stops has so long to see the end; its request may be on its way. */
const CLOSE_DELAY_MS = 250;

/** What a connection to the proxy itself may turn into; the socket, without listeners and paused, is its owner's again. */
export interface Handover {
  /** A CONNECT request was read; `first` are bytes behind it. */
  onConnect(head: RequestHead, first: Buffer | undefined): void;
  /** The client speaks HTTP/2 by prior knowledge; `first` are its first bytes. */
  onHttp2(first: Buffer): void;
}

/**
 * One client connection that speaks HTTP/1.1: to the proxy itself, or inside a tunnel that is intercepted. Requests
 * are answered one at a time in their order; pipelined ones wait unread, which holds the client back.
 */
export class HttpConnection implements ExchangeClient, Timed {
  setIndex = NOT_IN_SET;
  deadlineMs: number;
  readonly services: ProxyServices;
  readonly facts: ClientFacts;
  readonly origins: UpstreamConnections;
  readonly #writer: BatchedWriter;
  readonly #state = new DownstreamState();
  readonly #response: Http1Response;
  readonly #knownHost = new KnownHost();
  readonly #socket: ClientSocket;
  readonly #base: TunnelBase | undefined;
  readonly #handover: Handover | undefined;
  readonly #reader: RequestReader;
  #exchange: HttpExchange | undefined;
  #connectHead: RequestHead | undefined;
  #held: Buffer | undefined;
  /** Set from the second request on: a connection that is used again is worth it, and hardly ever becomes a tunnel. */
  #stopSharing: (() => void) | undefined;
  #isWorking = false;
  readonly #linger = new Linger();
  #isHeadTimed = false;
  #hasClientEnded = false;
  /** The client sent its last byte, and some of its request are held. */
  #endsBehindHeld = false;
  #hasReceived = false;

  constructor(
    services: ProxyServices,
    socket: ClientSocket,
    facts: ClientFacts,
    base: TunnelBase | undefined,
    handover: Handover | undefined,
  ) {
    this.services = services;
    this.facts = facts;
    this.#writer = new BatchedWriter(socket);
    this.#response = new Http1Response(this.#writer, this.#state);
    this.origins = new UpstreamConnections(services, facts.address, (origin) =>
      services.pipeline.closing(facts, origin),
    );
    this.#socket = socket;
    this.#base = base;
    this.#handover = handover;
    this.deadlineMs = performance.now() + services.policy().headTimeoutMs;
    this.#reader = new RequestReader(
      {
        onHead: (head) => this.#onHead(head),
        onData: (piece) => {
          this.#state.requestData();
          this.#exchange?.onRequestData(ownBytes(piece));
        },
        onTrailers: (fields) => this.#exchange?.onRequestTrailers(fields),
        onEnd: () => {
          this.#state.requestEnded();
          this.#exchange?.onRequestEnd();
        },
        onError: (error, headText) => this.#refuse(error, headText),
      },
      services.policy().headLimits,
      { tidiesAuthority: true },
    );
    services.deadlines.add(this);
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("drain", this.#onDrain);
    socket.on("error", ignoreError);
    socket.on("close", this.#onClose);
  }

  /** Whether the client ever sent anything on this connection. */
  get hasReceived(): boolean {
    return this.#hasReceived;
  }

  /** Bytes that were read before this connection was made. */
  begin(first: Buffer | undefined): void {
    if (first) this.#onData(first);
    else this.#socket.resume();
  }

  /** The present exchange is the last one; an idle connection closes soon, whether or not its client looks. */
  drain(): void {
    this.#linger.shorten();
    if (this.#linger.isOn || this.#state.isTunnel || this.#state.drain() === "finish") return;
    this.#stopReading();
    // The last answer may still be leaving. What was sent before our end was seen would cause a reset, which loses it.
    this.#socket.once("finish", () => setTimeout(() => this.#socket.destroy(), CLOSE_DELAY_MS).unref());
  }

  /** Ends at once whatever goes on. */
  abort(failure: Failure): void {
    this.#exchange?.fail(failure);
    this.#socket.destroy();
  }

  get mayRespond(): boolean {
    return this.#state.mayRespond;
  }

  touch(): void {
    const { idleTimeoutMs } = this.services.policy();
    this.deadlineMs =
      performance.now() + (this.#hasClientEnded ? Math.min(HALF_CLOSED_MS, idleTimeoutMs) : idleTimeoutMs);
  }

  holdReading(): void {
    this.#reader.pause();
    this.#socket.pause();
  }

  releaseReading(): void {
    this.#reader.resume();
    if (!this.#isWorking) this.#work();
  }

  askForBody(): void {
    if (!this.#state.bodyWanted()) return;
    this.#writer.text(responseHeadText(100, "Continue", []));
    this.#writer.flush();
  }

  sendInformational(status: number, reason: string, fields: RawFields): void {
    this.#response.informational(status, reason, fields);
  }

  sendHead(response: Readonly<ResponseMessage>, framing: Framing): number {
    return this.#response.head(response, framing);
  }

  sendData(piece: Buffer): void {
    this.#response.data(piece);
  }

  sendEnd(trailers: RawFields | undefined): void {
    this.#response.end(trailers);
  }

  flush(): boolean {
    return this.#writer.flushSoon();
  }

  exchangeEnded(): void {
    this.#exchange = undefined;
    switch (this.#state.responseEnded()) {
      case "read":
        this.#reader.next();
        this.#reader.resume();
        this.#stopSharing ??= shareReadBuffer(this.#socket);
        this.touch();
        if (!this.#isWorking) this.#work();
        return;
      case "close":
        return this.#writer.end();
      case "linger":
        this.#endAndLinger();
    }
  }

  exchangeBroken(): void {
    this.#exchange = undefined;
    this.#writer.flush();
    // A body that only the end of the connection delimits would look complete after a clean close.
    if (this.#response.showsItsEnd) this.#socket.destroySoon();
    else cutConnection(this.#socket);
  }

  switchProtocols(
    origin: { readonly socket: ByteSocket; readonly bytes: Buffer | undefined },
    exchange: HttpExchange,
  ): void {
    const { reason = "", fields = [] } = exchange.response ?? {};
    this.#writer.text(responseHeadText(101, reason, switchFields(fields)));
    this.#state.tunnelStarted();
    this.#writer.flush();
    const first = this.#held;
    this.#held = undefined;
    this.#exchange = undefined;
    this.#release();
    relay({
      client: this.#socket,
      upstream: origin.socket,
      fromClient: first,
      fromUpstream: origin.bytes,
      counts: exchange,
      services: this.services,
      onEnd: (failure) => exchange.tunnelEnded(failure),
    });
  }

  onDeadline(): void {
    if (this.#linger.isOn || this.#state.isIdle) {
      if (!this.#linger.isOn && this.#reader.hasPartialHead) return this.#respondWithTimeout();
      if (this.#linger.goesOn(this, this.#socket)) return;
      const mayWaitForServer = !this.#hasReceived && mayBeForeign(this.#base);
      if (mayWaitForServer) failTunnel(this.#base, invalidRequest("The client said nothing"));
      return void this.#socket.destroy();
    }
    const exchange = this.#exchange;
    if (!exchange) return void this.#socket.destroy();
    if (this.#hasClientEnded) {
      this.#clientGone();
      this.#socket.destroy();
      return;
    }
    if (exchange.isDeciding) {
      this.touch();
      return;
    }
    const idleTimeoutMs = this.services.policy().idleTimeoutMs;
    this.touch();
    // A client that was told to wait, or may wait for a 100, is not the one that is slow.
    const isAwaited = exchange.isReceiving && !this.#reader.isPaused && !this.#state.isAwaitingContinue;
    const waitsFor = this.#socket.writableNeedDrain ? "answer-taken" : isAwaited ? "body" : "origin";
    exchange.fail(stalled(exchange, waitsFor, idleTimeoutMs));
  }

  #onHead(head: RequestHead): void {
    this.#isHeadTimed = false;
    this.#state.requestStarted(head);
    this.#response.begin();
    if (head.method === "CONNECT" && this.#handover) {
      this.#connectHead = head;
      return;
    }
    const planned = planRequest(head, this.#base, this.#knownHost.of(head.host), this.services, this.#socket);
    if (planned.kind === "refused") {
      this.#respondWithError(planned.status, planned.failure, head);
      return;
    }
    // Who asks for what nobody can serve is not listened to any further.
    if (planned.plan.kind === "failure" && planned.plan.failure.code === "CLIENT_PROTOCOL") this.#state.drain();
    this.#exchange = new HttpExchange(this, head, planned.request, planned.plan);
    this.#exchange.start();
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#linger.isOn) return this.#linger.renew(this);
    if (this.#stopSharing === undefined) trackExternalMemory(chunk.length);
    this.#held = this.#held ? Buffer.concat([this.#held, chunk]) : chunk;
    if (!this.#hasReceived && this.#handover && this.#mayBeHttp2(this.#held, this.#handover)) return;
    const isFirst = !this.#hasReceived;
    this.#hasReceived = true;
    if (isFirst && mayBeForeign(this.#base) && isForeignToHttp1(this.#held)) return this.#endForeign();
    if (!this.#isWorking) this.#work();
    if (this.#held !== undefined) this.#held = keptBytes(this.#held);
    this.#setDeadline();
  };

  /** True: the connection was handed over, or more bytes are needed to tell. */
  #mayBeHttp2(first: Buffer, handover: Handover): boolean {
    const begins = beginsAsHttp2(first);
    if (begins === "yes") {
      this.#held = undefined;
      this.#release();
      this.#socket.pause();
      handover.onHttp2(first);
    }
    return begins !== "no";
  }

  /** Who speaks something else is not answered in HTTP, and would wait for the end of a head. */
  #endForeign(): void {
    failTunnel(this.#base, invalidRequest("What the client said is not HTTP"));
    this.#held = undefined;
    this.#socket.destroySoon();
  }

  /** Reads what is held, request after request, as far as the answers allow. */
  #work(): void {
    this.#isWorking = true;
    while (this.#held !== undefined && this.#state.mayRead && !this.#reader.isPaused && !this.#isBackedUp) {
      const chunk = this.#held;
      this.#held = undefined;
      try {
        const at = this.#reader.read(chunk);
        if (at < chunk.length) this.#held = chunk.subarray(at);
        if (this.#connectHead) return this.#handOver(this.#connectHead);
        this.#exchange?.onRequestBatch();
      } catch (error) {
        this.#broken(error);
      }
    }
    this.#isWorking = false;
    if (this.#endsBehindHeld && this.#held === undefined) {
      this.#endsBehindHeld = false;
      this.#clientEnded();
    }
    if (this.#socket.destroyed || this.#state.isTunnel) return;
    if (this.#held !== undefined || this.#reader.isPaused || this.#isBackedUp) this.#socket.pause();
    else this.#socket.resume();
  }

  /** A client that does not take its answers is asked for no more requests, or they would fill the memory. */
  get #isBackedUp(): boolean {
    return this.#state.isIdle && this.#socket.writableNeedDrain;
  }

  /** A defect of ours ends this connection, not the process. */
  #broken(error: unknown): void {
    this.services.log.error({ err: error }, "A client connection failed");
    this.abort(internalFailure(error));
  }

  #setDeadline(): void {
    if (this.#state.isIdle && this.#reader.hasPartialHead) {
      // Set once for each head, so that a byte now and then does not keep the connection for ever.
      if (!this.#isHeadTimed) this.deadlineMs = performance.now() + this.services.policy().headTimeoutMs;
      this.#isHeadTimed = true;
    } else if (!this.#linger.isOn) {
      this.touch();
    }
  }

  #handOver(head: RequestHead): void {
    const first = this.#held && keptBytes(this.#held);
    this.#held = undefined;
    this.#state.tunnelStarted();
    // The answer before this request may still wait for the end of the turn, and what follows is written past the writer.
    this.#writer.flush();
    this.#release();
    this.#socket.pause();
    this.#handover?.onConnect(head, first);
  }

  /** Gives the socket away. */
  #release(): void {
    this.#stopSharing?.();
    this.services.deadlines.delete(this);
    this.#socket.off("data", this.#onData);
    this.#socket.off("end", this.#onEnd);
    this.#socket.off("drain", this.#onDrain);
    this.#socket.off("error", ignoreError);
    this.#socket.off("close", this.#onClose);
    this.origins.end();
  }

  #refuse(error: Http1Error, headText: string): void {
    const failure = invalidRequest(`The request is not valid HTTP: ${error.message}`, error);
    if (this.#state.requestRefused() === "destroy") {
      if (this.#exchange) this.#exchange.fail(failure);
      else this.#socket.destroy();
      return;
    }
    if (this.#exchange) return this.#exchange.fail(failure);
    const refused = refusedRequest(headText, error, this.#base);
    if (refused === undefined) {
      failTunnel(this.#base, { ...failure, status: error.status });
      return this.#respondWithError(error.status, failure, undefined);
    }
    this.#response.begin();
    this.#exchange = new HttpExchange(this, refused.head, refused.request, refused.plan);
    this.#exchange.start();
  }

  #respondWithTimeout(): void {
    const message = `No complete request head came within ${this.services.policy().headTimeoutMs} ms`;
    const failure: Failure = { stage: "client-read", side: "client", code: "CLIENT_TIMEOUT", message };
    this.#state.requestRefused();
    failTunnel(this.#base, failure);
    this.#respondWithError(408, failure, undefined);
  }

  /** Answers a request that never became an exchange, then closes. */
  #respondWithError(status: number, failure: Failure, head: RequestHead | undefined): void {
    this.#response.refusal(status, failure, head);
    this.#endAndLinger();
  }

  /** Closing at once would reset the connection under an answer that the client has not read yet. */
  #endAndLinger(): void {
    this.#stopReading();
    this.#linger.renew(this);
  }

  /** Ends our side; what still comes is discarded. */
  #stopReading(): void {
    this.#linger.begin();
    this.#held = undefined;
    this.#reader.pause();
    this.#writer.end();
    this.#socket.resume();
  }

  readonly #onEnd = (): void => {
    // A paused socket tells its end all the same; what was read before it comes first.
    if (this.#held !== undefined && this.#exchange?.isReceiving === true) this.#endsBehindHeld = true;
    else this.#clientEnded();
  };

  #clientEnded(): void {
    switch (this.#state.clientEnded()) {
      case "close":
        this.#writer.end();
        return;
      case "destroy":
        this.#clientGone();
        this.#socket.destroy();
        return;
      case "finish":
        this.#hasClientEnded = true;
        this.touch();
        askWhetherGone(this.#response, () => this.#exchange?.isDeciding === true);
    }
  }

  readonly #onDrain = (): void => {
    this.touch();
    this.#exchange?.onClientDrain();
    if (this.#state.isIdle && !this.#isWorking) this.#work();
  };

  readonly #onClose = (): void => {
    this.services.deadlines.delete(this);
    this.#clientGone();
    this.origins.end();
  };

  #clientGone(): void {
    this.#state.closed();
    this.#exchange?.fail(CLIENT_GONE);
    this.#exchange = undefined;
  }
}

function ignoreError(): void {
  // "close" follows and does what is needed.
}

/**
 * While rules decide nothing is written that a client which is gone would refuse. An interim answer is, and one that
 * only ended its sending side passes over it (RFC 9110, 15.2). The refusal of one shows when the next is written.
 */
function askWhetherGone(
  response: Http1Response,
  isDeciding: () => boolean,
  [delayMs, ...later]: readonly number[] = ASK_AGAIN_MS,
): void {
  if (!isDeciding() || !response.informational(102, reasonPhrase(102), [])) return;
  response.flush();
  if (delayMs !== undefined) setTimeout(() => askWhetherGone(response, isDeciding, later), delayMs).unref();
}

/** Whether the client of a tunnel may speak another protocol than HTTP: inside TLS nothing but ALPN says what it speaks. */
function mayBeForeign(base: TunnelBase | undefined): boolean {
  return base?.scheme === "https" && base.isHttpAgreed === false;
}

/** Tells the tunnel how it failed where no request can have that in its entry, and its user what to do about it. */
function failTunnel(base: TunnelBase | undefined, failure: Failure): void {
  if (base === undefined) return;
  const advice = `; if the client speaks another protocol than HTTP inside TLS, list ${base.host} under passthrough_domains`;
  base.failed?.(mayBeForeign(base) ? { ...failure, message: failure.message + advice } : failure);
}
