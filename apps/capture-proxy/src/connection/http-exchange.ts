import { reasonPhrase } from "@headworks/http-fields";
import {
  asciiTarget,
  hasBody,
  Http1Error,
  isLastRecipient,
  type RawFields,
  removeField,
  setFraming,
  tracedRequest,
  withoutHopByHop,
} from "@headworks/http1";
import type { ByteSocket } from "@headworks/sockets";
import type { ThrottledPace } from "#exchange/bandwidth-limiter.ts";
import { BodyCapture, type OpenFilter } from "#exchange/body.ts";
import {
  type ClientFacts,
  type Content,
  type Exchange,
  type ExchangeState,
  exchangeUrl,
  type HttpVersion,
  type Moments,
  newExchangeId,
  newMoments,
  type Original,
  type RequestMessage,
  type ResponseMessage,
  type TraceStep,
  type UpstreamTlsFacts,
} from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { SyntheticResponse, Verdict } from "#exchange/phases.ts";
import { whenDecided } from "#exchange/pipeline.ts";
import type { LostOutcome, Origin, OriginRequest, ResponseHandler, ResponseHead } from "#upstream/origin.ts";
import { failureResponse, internalFailure } from "./client-failures.ts";
import { isKnownLonger, RequestSender, ResponseSender, type ResponseWriter } from "./message-sender.ts";
import type { ProxyServices } from "./proxy-services.ts";
import type { OpenTap } from "./relay.ts";
import { type ExchangePlan, type ForwardPlan, type ReceivedHead, replanned } from "./request-plan.ts";
import { type UpstreamConnections, UpstreamLease } from "./upstream-connections.ts";
import { websocketTap } from "./websocket-tap.ts";

interface ExchangeStart {
  readonly client: ClientFacts;
  readonly request: RequestMessage;
  readonly isRecorded: boolean;
  /** By default, bodies are captured according to the settings. */
  readonly requestBody?: BodyCapture;
  readonly responseBody?: BodyCapture;
  readonly moments: Moments;
}

/** An exchange in flight as slices see it: announced once at its start and settled exactly once at its end. */
export abstract class LiveExchange implements Exchange {
  readonly id: string;
  readonly startedAtMs: number;
  readonly client: ClientFacts;
  request: RequestMessage;
  response: ResponseMessage | undefined = undefined;
  requestBody: BodyCapture;
  responseBody: BodyCapture;
  readonly moments: Moments;
  state: ExchangeState = { step: "receiving" };
  source: "upstream" | "slice" = "upstream";
  passthrough = false;
  serverAddress: string | undefined = undefined;
  upstreamTls: UpstreamTlsFacts | undefined = undefined;
  readonly isRecorded: boolean;
  trace: readonly TraceStep[] | undefined = undefined;
  originalRequest: Original<RequestMessage> | undefined = undefined;
  originalResponse: Original<ResponseMessage> | undefined = undefined;
  pace: ThrottledPace | undefined = undefined;
  protected readonly services: ProxyServices;
  #isFinished = false;

  constructor(services: ProxyServices, start: ExchangeStart) {
    this.services = services;
    this.startedAtMs = Date.now();
    this.id = newExchangeId(this.startedAtMs);
    this.client = start.client;
    this.request = start.request;
    this.moments = start.moments;
    this.isRecorded = start.isRecorded;
    this.requestBody = start.requestBody ?? this.newCapture("request");
    this.responseBody = start.responseBody ?? this.newCapture("response");
  }

  /** True once the response ended or the exchange failed. */
  get isFinished(): boolean {
    return this.#isFinished;
  }

  get modified(): boolean {
    return this.originalRequest !== undefined || this.originalResponse !== undefined;
  }

  /** Message inspection for the relay of a switched protocol. */
  get openTap(): OpenTap | undefined {
    const open = websocketTap(this.services, this);
    if (open === undefined) return undefined;
    return (up, down, end) => {
      const tap = open(up, down, end);
      if (tap !== undefined) this.#onlyCountBytes();
      return tap;
    };
  }

  /** WebSocket frames are recorded as frames; capturing their bytes as bodies would store them twice. */
  #onlyCountBytes(): void {
    this.requestBody.end();
    this.responseBody.end();
    this.requestBody = new BodyCapture(0, undefined);
    this.responseBody = new BodyCapture(0, undefined);
  }

  addTrace(step: TraceStep): void {
    this.trace = this.trace === undefined ? [step] : [...this.trace, step];
  }

  changeRequest(): RequestMessage {
    // Fields are mutated in place, which invalidates `fieldLines`.
    this.request.fieldLines = undefined;
    this.originalRequest ??= { message: { ...this.request, fields: [...this.request.fields] }, body: undefined };
    return this.request;
  }

  changeResponse(): ResponseMessage {
    if (this.response === undefined) throw new TypeError("There is no response to change yet");
    this.response.fieldLines = undefined;
    this.originalResponse ??= { message: { ...this.response, fields: [...this.response.fields] }, body: undefined };
    return this.response;
  }

  abstract get requestHasBody(): boolean;
  abstract requestContent(limitBytes: number): Promise<Content>;
  abstract responseContent(limitBytes: number): Promise<Content>;
  abstract setRequestContent(bytes: Buffer): void;
  abstract setResponseContent(bytes: Buffer): void;
  abstract filterBody(side: "request" | "response", open: OpenFilter): void;

  protected newCapture(side: "request" | "response"): BodyCapture {
    const { maxBodyBytes, capturesRequestBodies, capturesResponseBodies } = this.services.policy();
    const captures = side === "request" ? capturesRequestBodies : capturesResponseBodies;
    return new BodyCapture(maxBodyBytes, this.isRecorded && captures ? this.services.spool : undefined);
  }

  protected announce(): void {
    this.services.gauges.activeExchanges += 1;
    this.services.pipeline.started(this);
  }

  protected settle(state: ExchangeState): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.moments.ended = performance.now();
    this.state = state;
    this.requestBody.end();
    this.responseBody.end();
    this.services.gauges.activeExchanges -= 1;
    this.services.pipeline.finished(this);
    if (this.services.log.isLevelEnabled("debug")) this.#log();
  }

  #log(): void {
    const { request, response, moments, state } = this;
    const facts = {
      status: response?.status,
      durationMs: Math.round(moments.ended - moments.started),
      requestBytes: this.requestBody.sizeBytes,
      responseBytes: this.responseBody.sizeBytes,
      ...(state.step === "failed" ? { failure: state.failure.code } : {}),
    };
    this.services.log.debug(facts, `${request.method} ${exchangeUrl(request)}`);
  }
}

/** A client's connection. `localAddress` and `bytesWritten` exist for network sockets only. */
export type ClientSocket = ByteSocket & {
  readonly localAddress?: string | undefined;
  readonly bytesWritten?: number | undefined;
};

/** The client side of an exchange: an HTTP/1.1 connection during one request, or one HTTP/2 stream. */
export interface ExchangeClient extends ResponseWriter {
  readonly services: ProxyServices;
  readonly facts: ClientFacts;
  readonly origins: UpstreamConnections;
  /** Whether a response may still be started. */
  readonly mayRespond: boolean;
  /** Resets the idle timeout. */
  touch(): void;
  /** Stops reading the request body (backpressure). */
  holdReading(): void;
  releaseReading(): void;
  /** Sends 100 (Continue) if the client expects it. */
  sendContinue(): void;
  /** Forwards a 1xx response where the client supports it. */
  sendInformational(status: number, reason: string, fields: RawFields): void;
  exchangeEnded(): void;
  /** Ends the connection or stream so that the client sees an incomplete response. */
  exchangeBroken(failure: Failure): void;
  /** After a 101 both sockets belong to the new protocol until either of them ends. */
  switchProtocols(
    origin: { readonly socket: ByteSocket; readonly bytes: Buffer | undefined },
    exchange: HttpExchange,
  ): void;
}

const FORWARDING: ExchangeState = { step: "forwarding" };
const RESPONDING: ExchangeState = { step: "responding" };
const COMPLETED: ExchangeState = { step: "completed" };

/** A response of the proxy waits for a request body of this size, to keep the connection reusable. */
const DRAINED_BODY_BYTES = 1_048_576;

const VERSIONS: Readonly<Record<ResponseHead["version"], HttpVersion>> = {
  "1.0": "HTTP/1.0",
  "1.1": "HTTP/1.1",
  "2": "HTTP/2",
};

/**
 * One HTTP exchange: reads a request from its client, runs the phases, sends it to the origin and returns the
 * response, whatever HTTP version each side speaks. It is both the `Exchange` that slices see and the handler of the
 * origin's response.
 */
export class HttpExchange extends LiveExchange implements ResponseHandler {
  readonly #requestSender: RequestSender;
  readonly #responseSender: ResponseSender;
  readonly #client: ExchangeClient;
  readonly #head: ReceivedHead;
  #plan: ExchangePlan;
  readonly #lease: UpstreamLease;
  #isRetry = false;
  /** True while an interceptor's promise is pending; timeouts are suspended unless it awaits more bytes. */
  #isDeciding = false;
  #respondAfterBody: (() => void) | undefined;
  /** Set when the response is an error page; becomes the final state when that response has ended. */
  #failure: Failure | undefined;

  constructor(client: ExchangeClient, head: ReceivedHead, request: RequestMessage, plan: ExchangePlan) {
    const isRecorded = plan.kind !== "own-page" && client.services.policy().records(request.host);
    super(client.services, { client: client.facts, request, isRecorded, moments: newMoments() });
    this.#requestSender = new RequestSender(head.framing, this);
    this.#responseSender = new ResponseSender(client, head.method, this);
    this.#client = client;
    this.#lease = new UpstreamLease(client.origins, client.services.gauges);
    this.#head = head;
    this.#plan = plan;
  }

  // -- request

  /** Runs the request phases, then forwards the request or responds. */
  start(): void {
    this.announce();
    if (this.#plan.kind === "own-page") {
      const { response } = this.#plan;
      return this.#afterBody(() => this.respond(response));
    }
    if (this.#plan.kind === "failure") return this.fail(this.#plan.failure);
    const verdict = this.services.pipeline.requestHead(this);
    if (!(verdict instanceof Promise)) return this.#decided(verdict);
    // Without a body, reading continues so that a disconnect is noticed.
    if (hasBody(this.#head.framing) && !this.#requestSender.isWaitedFor) this.#client.holdReading();
    this.#whenDecided(verdict, (later) => {
      this.#decided(later);
      this.#lease.origin?.flush();
      this.#client.releaseReading();
    });
  }

  /** True while request body bytes are still expected from the client. */
  get isReceiving(): boolean {
    return !this.#requestSender.isComplete;
  }

  get requestHasBody(): boolean {
    return hasBody(this.#requestSender.framing);
  }

  onRequestData(piece: Buffer): void {
    if (this.isFinished) return;
    if (!this.#requestSender.isFiltered) this.requestBody.add(piece);
    if (this.#respondAfterBody !== undefined) {
      if (this.requestBody.sizeBytes > DRAINED_BODY_BYTES) this.#respondAfterBody();
      return;
    }
    if (!this.#requestSender.add(piece)) this.#client.holdReading();
  }

  onRequestTrailers(fields: RawFields): void {
    this.request.trailers = fields;
  }

  onRequestEnd(): void {
    const mayEnd = this.#requestSender.complete();
    this.moments.requestEnded = performance.now();
    if (!this.#requestSender.isFiltered) this.requestBody.end();
    if (this.#respondAfterBody !== undefined) this.#respondAfterBody();
    else if (mayEnd) this.#endRequest();
  }

  /** End of one read from the client: flushes towards the origin. */
  onRequestBatch(): void {
    if (this.#requestSender.isSent && this.#lease.origin?.flush() === false) this.#client.holdReading();
  }

  onRequestFiltered(piece: Buffer): void {
    this.requestBody.add(piece);
  }

  onRequestMoved(): void {
    if (this.isFinished) return;
    this.#client.touch();
    if (this.#requestSender.isReadyToEnd) {
      this.#endRequest();
      this.#lease.origin?.flush();
    } else if (this.#requestSender.wantsMore) {
      this.#client.releaseReading();
    }
  }

  #endRequest(): void {
    this.#requestSender.end(this.request.trailers);
    this.moments.sendEnded = performance.now();
    if (this.#requestSender.isFiltered) this.requestBody.end();
  }

  /** Lets the client finish a small body first, so that it is recorded and the connection can be reused. */
  #afterBody(respond: () => void): void {
    this.#recordUnsent();
    if (this.#requestSender.isComplete || isKnownLonger(this.#head.framing, DRAINED_BODY_BYTES)) return respond();
    this.#respondAfterBody = respond;
    this.#client.sendContinue();
  }

  // -- interceptors

  #whenDecided(verdict: Promise<Verdict>, proceed: (verdict: Verdict) => void): void {
    this.#isDeciding = true;
    const decided = (later: Verdict): void => {
      // The exchange failed meanwhile, and the error response is already being written.
      if (this.isFinished || this.#failure !== undefined) return;
      this.#isDeciding = false;
      proceed(later);
    };
    whenDecided(verdict, decided, (error) => this.fail(internalFailure(error)));
  }

  /** True while an interceptor is pending and awaits neither the client nor the origin. */
  get isDeciding(): boolean {
    if (this.#requestSender.isDeciding || this.#responseSender.isDeciding) return true;
    return this.#isDeciding && !this.#requestSender.isWaitedFor && !this.#responseSender.isWaitedFor;
  }

  #decided(verdict: Verdict): void {
    switch (verdict.kind) {
      case "respond":
        return this.#afterBody(() => this.#respondByRule(verdict.response));
      case "abort":
        return this.#abort(verdict);
      default:
        if (this.#plan.kind === "forward") this.#forward(this.#plan);
    }
  }

  #runResponsePhases(): void {
    const verdict = this.services.pipeline.responseHead(this);
    if (!(verdict instanceof Promise)) return this.#onResponseVerdict(verdict);
    if (!this.#responseSender.isWaitedFor) this.#lease.origin?.hold();
    this.#whenDecided(verdict, (later) => {
      this.#onResponseVerdict(later);
      this.#client.flush();
      if (!this.isFinished) this.#lease.origin?.release();
    });
  }

  #onResponseVerdict(verdict: Verdict): void {
    if (verdict.kind === "abort") return this.#abort(verdict);
    if (verdict.kind === "continue") return this.#deliver();
    this.changeResponse();
    if (this.originalResponse !== undefined) this.originalResponse.body ??= this.#responseSender.held.joined();
    this.#lease.release();
    this.respond(verdict.response);
  }

  #abort({ reason, closes }: Verdict & { kind: "abort" }): void {
    const failure: Failure = { stage: "policy", side: "internal", code: "BLOCKED", message: reason };
    if (closes !== true) return this.fail(failure);
    this.#end({ step: "failed", failure });
    this.#client.exchangeBroken(failure);
  }

  requestContent(limitBytes: number): Promise<Content> {
    if (this.#requestSender.isSent && !this.isFinished) throw new TypeError("The request has already been sent");
    return this.#requestSender.held.content(limitBytes, this.isFinished, () => this.#readRequestOn());
  }

  /** An interceptor awaits the rest of the request body. */
  #readRequestOn(): void {
    this.#client.sendContinue();
    this.#client.releaseReading();
  }

  responseContent(limitBytes: number): Promise<Content> {
    if (this.#responseSender.hasStarted && !this.isFinished) throw new TypeError("The response has already started");
    return this.#responseSender.held.content(limitBytes, this.isFinished, () => this.#readResponseOn());
  }

  /** An interceptor awaits the rest of the response body. */
  #readResponseOn(): void {
    this.#lease.origin?.release();
  }

  setRequestContent(bytes: Buffer): void {
    if (this.#requestSender.isSent) throw new TypeError("The request has already been sent");
    const { fields } = this.changeRequest();
    (this.originalRequest as Original<RequestMessage>).body ??= this.#requestSender.held.joined();
    this.#requestSender.replace(bytes);
    setFraming(fields, this.#requestSender.framing);
    removeField(fields, "trailer");
    this.request.trailers = undefined;
    this.#restartCapture("request");
    if (this.#requestSender.isFiltered) return;
    this.requestBody.add(bytes);
    this.requestBody.end();
  }

  setResponseContent(bytes: Buffer): void {
    if (this.#responseSender.hasStarted) throw new TypeError("The response has already started");
    const response = this.changeResponse();
    (this.originalResponse as Original<ResponseMessage>).body ??= this.#responseSender.held.joined();
    this.#responseSender.replace(bytes);
    this.#recaptureResponse(bytes);
    setFraming(response.fields, this.#responseSender.framing);
    removeField(response.fields, "trailer");
    response.trailers = undefined;
  }

  /** Restarts the capture of the response with `body`. */
  #recaptureResponse(body: Buffer): void {
    if (this.responseBody.sizeBytes > 0) this.#restartCapture("response");
    const isRecorded = this.#responseSender.showsBody(this.response?.status ?? 0) && !this.#responseSender.isFiltered;
    if (isRecorded) this.responseBody.add(body);
  }

  #restartCapture(side: "request" | "response"): void {
    const key = side === "request" ? "requestBody" : "responseBody";
    const received = this[key];
    this[key] = this.newCapture(side);
    received.replaceBy(this[key]);
  }

  filterBody(side: "request" | "response", open: OpenFilter): void {
    if (this.isFinished || this.#failure !== undefined) return;
    const isRequest = side === "request";
    if (isRequest && this.#requestSender.isSent) throw new TypeError("The request has already been sent");
    if (!isRequest && this.#responseSender.hasStarted) throw new TypeError("The response has already started");
    const sender = isRequest ? this.#requestSender : this.#responseSender;
    const { framing } = sender;
    if (!hasBody(framing)) return;
    sender.filterBody(open);
    if (framing.kind === "length") {
      removeField((isRequest ? this.changeRequest() : this.changeResponse()).fields, "content-length");
    }
    if ((isRequest ? this.requestBody : this.responseBody).sizeBytes > 0) this.#restartCapture(side);
  }

  /** Bodies that were held for a filter and not forwarded are recorded as received. */
  #recordUnsent(): void {
    for (const piece of this.#requestSender.removeFilter()) this.requestBody.add(piece);
    for (const piece of this.#responseSender.removeFilter()) this.responseBody.add(piece);
  }

  // -- upstream

  #forward(planned: ForwardPlan): void {
    this.state = FORWARDING;
    const { method, fields } = this.request;
    if (isLastRecipient(method, fields)) return this.#respondAsLast();
    const { originalRequest } = this;
    const plan = originalRequest === undefined ? planned : replanned(planned, originalRequest.message, this.request);
    const request = this.#originRequest(plan);
    const ready = this.#lease.ready(plan, request, this);
    if (ready) return this.#send(ready, request);
    this.#lease.open(plan, request, this, {
      connected: (origin) => {
        this.#send(origin, request);
        origin.flush();
        this.#client.releaseReading();
      },
      failed: (failure) => this.fail(failure),
    });
  }

  /** TRACE and OPTIONS with Max-Forwards: 0 (RFC 9110, 7.6.2). */
  #respondAsLast(): void {
    const { method, path, version, fields } = this.request;
    const received = { method, target: this.#head.target ?? path, version: version.slice("HTTP/".length), fields };
    const response =
      method === "TRACE"
        ? { status: 200, fields: ["Content-Type", "message/http"], body: tracedRequest(received) }
        : { status: 200, fields: [], body: Buffer.alloc(0) };
    this.#afterBody(() => this.#respondByRule(response));
  }

  #originRequest({ authority, sentPath }: ForwardPlan): OriginRequest {
    const { upgrade, keepAlive } = this.#head;
    const { framing } = this.#requestSender;
    const { method, fields, fieldLines } = this.request;
    const isRetry = this.#isRetry;
    return {
      method,
      path: sentPath === undefined ? this.request.path : this.#pathAsSent(sentPath),
      fields,
      fieldLines,
      framing,
      hasBody: hasBody(framing),
      upgrade,
      authority,
      keepAlive,
      isRetry,
    };
  }

  /** The target as received, unless a rule changed the path. */
  #pathAsSent(sentPath: string): string {
    const { path } = this.request;
    return asciiTarget(sentPath) === path ? sentPath : path;
  }

  #send(origin: Origin, request: OriginRequest): void {
    this.#lease.origin = origin;
    this.serverAddress = origin.address;
    this.upstreamTls = origin.tls;
    this.moments.sendStarted = performance.now();
    try {
      if (this.#requestSender.send(origin, this, request)) this.#endRequest();
    } catch (error) {
      if (!(error instanceof Http1Error)) throw error;
      const message = "The request has a part that cannot be sent";
      this.fail({ stage: "send", side: "internal", code: "INTERNAL", message, cause: error });
    }
  }

  onOriginDrain(): void {
    this.#requestSender.resume();
    if (this.#requestSender.wantsMore) this.#client.releaseReading();
  }

  onOriginLost(outcome: LostOutcome, failure: Failure): void {
    this.#lease.origin = undefined;
    const mayRepeat = outcome === "retry" || (outcome === "unseen" && this.#requestSender.isRepeatable);
    if (mayRepeat && this.#plan.kind === "forward") {
      this.#isRetry = true;
      this.#requestSender.again();
      return this.#forward(this.#plan);
    }
    this.fail(failure);
  }

  // -- response

  onInformational(head: ResponseHead): void {
    this.#client.sendInformational(head.status, head.reason, withoutHopByHop(head.fields));
  }

  onResponseHead(head: ResponseHead): void {
    const { pipeline } = this.services;
    this.moments.firstByte = this.#lease.origin?.firstByteMs ?? performance.now();
    this.#requestSender.accepted();
    this.state = RESPONDING;
    this.response = {
      status: head.status,
      reason: head.reason,
      version: VERSIONS[head.version],
      fields: head.fields,
      fieldLines: head.fieldLines,
      trailers: undefined,
    };
    pipeline.responding(this);
    if (head.status === 101) return;
    this.#responseSender.framing = head.framing;
    this.#runResponsePhases();
  }

  onResponseData(piece: Buffer): void {
    if (this.isFinished) return;
    if (!this.#responseSender.isFiltered) this.responseBody.add(piece);
    if (!this.#responseSender.add(piece)) this.#lease.origin?.hold();
  }

  onResponseTrailers(fields: RawFields): void {
    if (this.response) this.response.trailers = fields;
  }

  onResponseBatch(): void {
    this.#client.touch();
    if (!this.#client.flush()) this.#lease.origin?.hold();
  }

  onResponseEnd(): void {
    this.#lease.origin = undefined;
    if (this.isFinished) return;
    this.#responseSender.complete();
    if (this.#responseSender.isReadyToEnd) this.#endResponse();
  }

  /** Responds without an origin and without running the response phases. */
  respond(response: SyntheticResponse): void {
    if (this.isFinished || !this.#client.mayRespond) return;
    this.#setResponse(response);
    this.#deliver();
    this.#client.flush();
  }

  /** Response phases run on a rule's response as on an origin's. */
  #respondByRule(response: SyntheticResponse): void {
    if (this.isFinished || !this.#client.mayRespond) return;
    this.#setResponse(response);
    this.#runResponsePhases();
    this.#client.flush();
  }

  #setResponse(response: SyntheticResponse): void {
    this.source = "slice";
    this.moments.firstByte = performance.now();
    this.response = {
      status: response.status,
      reason: response.reason ?? reasonPhrase(response.status),
      version: this.request.version === "HTTP/2" ? "HTTP/2" : "HTTP/1.1",
      fields: response.fields,
      trailers: undefined,
    };
    this.services.pipeline.responding(this);
    this.#responseSender.replaceAll(response.body);
    this.#recaptureResponse(response.body);
  }

  #deliver(): void {
    this.state = RESPONDING;
    try {
      this.#responseSender.start(this.response as ResponseMessage);
    } catch (error) {
      if (!(error instanceof Http1Error)) throw error;
      return this.fail({
        stage: "receive",
        side: "upstream",
        code: "UPSTREAM_PROTOCOL",
        message: "The response has a field that cannot be forwarded",
        cause: error,
      });
    }
    if (this.#responseSender.isReadyToEnd) this.#endResponse();
  }

  #endResponse(): void {
    this.#responseSender.end(this.response?.trailers);
    this.#end(this.#failure === undefined ? COMPLETED : { step: "failed", failure: this.#failure });
    this.#client.flush();
    this.#client.exchangeEnded();
  }

  onClientDrain(): void {
    this.#responseSender.resume();
    // The response head is still with the interceptors: keep the origin paused.
    if (this.#responseSender.hasStarted && this.#responseSender.wantsMore) this.#lease.origin?.release();
  }

  onResponseFiltered(piece: Buffer): void {
    this.responseBody.add(piece);
  }

  onResponseMoved(): void {
    if (this.isFinished) return;
    this.#client.touch();
    if (this.#responseSender.isReadyToEnd) this.#endResponse();
    else if (this.#responseSender.wantsMore) this.#lease.origin?.release();
  }

  /** After a 101 the exchange lasts as long as both sockets. */
  onProtocolSwitched(): void {
    const origin = this.#lease.origin;
    if (origin === undefined || this.response === undefined) return;
    this.#lease.origin = undefined;
    this.#client.switchProtocols(origin.takeOver(), this);
  }

  tunnelEnded(failure: Failure | undefined): void {
    if (this.isFinished) return;
    this.#end(failure ? { step: "failed", failure } : COMPLETED);
  }

  // -- end

  /** Ends the exchange with a failure: an error page if no response has started, otherwise a broken connection. */
  fail(failure: Failure): void {
    if (this.isFinished) return;
    if (failure.code === "INTERNAL") this.services.log.error({ err: failure.cause }, "An exchange failed");
    this.#lease.release(failure.resetCode);
    this.#failure = failure;
    this.#isDeciding = false;
    // A stream reset by the origin before its response is passed on as a reset to HTTP/2 clients.
    const isCarriedOver = failure.resetCode !== undefined && this.request.version === "HTTP/2";
    if (this.#client.mayRespond && failure.code !== "CLIENT_ABORTED" && !isCarriedOver) {
      this.respond(failureResponse(failure, this.#head.fields));
      return;
    }
    this.#end({ step: "failed", failure });
    this.#client.exchangeBroken(failure);
  }

  #end(state: ExchangeState): void {
    this.#lease.release();
    this.#recordUnsent();
    this.settle(state);
    this.#requestSender.abandon();
    this.#responseSender.abandon();
  }
}
