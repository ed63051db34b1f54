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
} from "@headworks/http1";
import {
  type Content,
  type ExchangeState,
  type HttpVersion,
  type Moments,
  newMoments,
  type Original,
  type RequestMessage,
  type ResponseMessage,
} from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { SyntheticResponse, Verdict } from "#exchange/phases.ts";
import type { LostOutcome, Origin, OriginRequest, ResponseHandler, ResponseHead } from "#upstream/origin.ts";
import { internalFailure } from "./client-failures.ts";
import type { ExchangeClient, ReceivedHead } from "./exchange-client.ts";
import { failureResponse } from "./failure-page.ts";
import { informationalFields } from "./forwarded-fields.ts";
import { isKnownLonger } from "./held-body.ts";
import { whenDecided } from "./later-verdict.ts";
import { LiveExchange } from "./live-exchange.ts";
import { type ExchangePlan, type ForwardPlan, replanned } from "./request-plan.ts";
import { RequestSender } from "./request-sender.ts";
import { ResponseSender } from "./response-sender.ts";
import type { OriginResult, UpstreamRequirement } from "./upstream-connections.ts";

/** Adds bodies that interceptors may await and replace: both messages are buffered until they decide. */
abstract class HeldExchange extends LiveExchange {
  protected readonly sending: RequestSender;
  protected readonly responseSender: ResponseSender;

  constructor(client: ExchangeClient, head: ReceivedHead, request: RequestMessage, isRecorded: boolean) {
    super(client.services, { client: client.facts, request, isRecorded, moments: newMoments() });
    this.sending = new RequestSender(head.framing, this);
    this.responseSender = new ResponseSender(client, head.method, this);
  }

  /** The bandwidth limiter released request bytes. */
  abstract onRequestMoved(): void;
  /** The bandwidth limiter released response bytes. */
  abstract onResponseMoved(): void;

  requestContent(limitBytes: number): Promise<Content> {
    if (this.sending.isSent && !this.isFinished) throw new TypeError("The request has already been sent");
    return this.sending.held.content(limitBytes, this.isFinished, () => this.readRequestOn());
  }

  responseContent(limitBytes: number): Promise<Content> {
    if (this.responseSender.hasStarted && !this.isFinished) throw new TypeError("The response has already started");
    return this.responseSender.held.content(limitBytes, this.isFinished, () => this.readResponseOn());
  }

  setRequestContent(bytes: Buffer): void {
    if (this.sending.isSent) throw new TypeError("The request has already been sent");
    const { fields } = this.changeRequest();
    (this.originalRequest as Original<RequestMessage>).body ??= this.sending.held.joined();
    this.sending.replace(bytes);
    setFraming(fields, this.sending.framing);
    removeField(fields, "trailer");
    this.request.trailers = undefined;
    const received = this.requestBody;
    this.requestBody = this.newCapture("request");
    received.replaceBy(this.requestBody);
    this.requestBody.add(bytes);
    this.requestBody.end();
  }

  setResponseContent(bytes: Buffer): void {
    if (this.responseSender.hasStarted) throw new TypeError("The response has already started");
    const response = this.changeResponse();
    (this.originalResponse as Original<ResponseMessage>).body ??= this.responseSender.held.joined();
    this.responseSender.replace(bytes);
    this.recaptureResponse(bytes);
    setFraming(response.fields, this.responseSender.framing);
    removeField(response.fields, "trailer");
    response.trailers = undefined;
  }

  /** Restarts the capture of the response with `body`. */
  protected recaptureResponse(body: Buffer): void {
    if (this.responseBody.sizeBytes > 0) {
      const received = this.responseBody;
      this.responseBody = this.newCapture("response");
      received.replaceBy(this.responseBody);
    }
    if (this.responseSender.showsBody(this.response?.status ?? 0)) this.responseBody.add(body);
  }

  /** An interceptor awaits the rest of the request body. */
  protected abstract readRequestOn(): void;
  /** An interceptor awaits the rest of the response body. */
  protected abstract readResponseOn(): void;
}

/** The upstream connection of one exchange: acquired, held and released. */
class UpstreamLease {
  origin: Origin | undefined;
  readonly #client: ExchangeClient;
  /** Set while a connection is being opened. */
  #abandonDial: (() => void) | undefined;

  constructor(client: ExchangeClient) {
    this.#client = client;
  }

  /** Returns a connection that is ready now. A retry always needs a new one. */
  ready(plan: ForwardPlan, request: OriginRequest, holder: LeaseHolder): Origin | undefined {
    if (request.isRetry) return undefined;
    const { origins } = this.#client;
    const { destination } = plan;
    const requirement = requirementOf(plan, request, holder);
    return origins.ready(destination, requirement) ?? origins.inherit(destination, requirement, request);
  }

  /** Opens a connection for the request; `result` is not called once the lease is released. */
  open(plan: ForwardPlan, request: OriginRequest, holder: LeaseHolder, result: OriginResult): void {
    const { origins, services } = this.#client;
    services.gauges.pendingRequests += 1;
    this.#abandonDial = origins.open(plan.destination, requirementOf(plan, request, holder), holder.moments, {
      connected: (origin) => {
        this.#dialEnded();
        result.connected(origin);
      },
      failed: (failure) => {
        this.#dialEnded();
        result.failed(failure);
      },
    });
  }

  /** Cancels a pending dial or resets the connection in use. */
  release(resetCode?: number): void {
    this.#abandonDial?.();
    this.#dialEnded();
    this.origin?.destroy(resetCode);
    this.origin = undefined;
  }

  #dialEnded(): void {
    if (this.#abandonDial === undefined) return;
    this.#abandonDial = undefined;
    this.#client.services.gauges.pendingRequests -= 1;
  }
}

const FORWARDING: ExchangeState = { step: "forwarding" };
const RESPONDING: ExchangeState = { step: "responding" };
const COMPLETED: ExchangeState = { step: "completed" };

/**
 * A response made by the proxy is delayed until a request body of up to this size has arrived, so that the connection
 * can be reused.
 */
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
export class HttpExchange extends HeldExchange implements ResponseHandler {
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
    super(client, head, request, plan.kind !== "own-page" && client.services.policy().records(request.host));
    this.#client = client;
    this.#lease = new UpstreamLease(client);
    this.#head = head;
    this.#plan = plan;
  }

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
    if (hasBody(this.#head.framing) && !this.sending.isWaitedFor) this.#client.holdReading();
    this.#whenDecided(verdict, (later) => {
      this.#decided(later);
      this.#lease.origin?.flush();
      this.#client.releaseReading();
    });
  }

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

  /** True while request body bytes are still expected from the client. */
  get isReceiving(): boolean {
    return !this.sending.isComplete;
  }

  /** True while an interceptor is pending and awaits neither the client nor the origin. */
  get isDeciding(): boolean {
    return this.#isDeciding && !this.sending.isWaitedFor && !this.responseSender.isWaitedFor;
  }

  /** Responds without an origin and without running the response phases. */
  respond(response: SyntheticResponse): void {
    if (this.isFinished || !this.#client.mayRespond) return;
    this.#setResponse(response);
    this.#deliver();
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
    this.responseSender.replaceAll(response.body);
    this.recaptureResponse(response.body);
  }

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

  #abort({ reason, closes }: Verdict & { kind: "abort" }): void {
    const failure: Failure = { stage: "policy", side: "internal", code: "BLOCKED", message: reason };
    if (closes !== true) return this.fail(failure);
    this.#end({ step: "failed", failure });
    this.#client.exchangeBroken(failure);
  }

  protected readRequestOn(): void {
    this.#client.askForBody();
    this.#client.releaseReading();
  }

  protected readResponseOn(): void {
    this.#lease.origin?.release();
  }

  // Request side

  onRequestData(piece: Buffer): void {
    if (this.isFinished) return;
    this.requestBody.add(piece);
    if (this.#respondAfterBody !== undefined) {
      if (this.requestBody.sizeBytes > DRAINED_BODY_BYTES) this.#respondAfterBody();
      return;
    }
    if (!this.sending.add(piece)) this.#client.holdReading();
  }

  onRequestTrailers(fields: RawFields): void {
    this.request.trailers = fields;
  }

  onRequestEnd(): void {
    const mayEnd = this.sending.complete();
    this.moments.requestEnded = performance.now();
    this.requestBody.end();
    if (this.#respondAfterBody !== undefined) this.#respondAfterBody();
    else if (mayEnd) this.#endRequest();
  }

  /** End of one read from the client: flushes towards the origin. */
  onRequestBatch(): void {
    if (this.sending.isSent && this.#lease.origin?.flush() === false) this.#client.holdReading();
  }

  onClientDrain(): void {
    this.responseSender.resume();
    // The response head is still with the interceptors: keep the origin paused.
    if (this.responseSender.hasStarted && this.responseSender.wantsMore) this.#lease.origin?.release();
  }

  onRequestMoved(): void {
    if (this.isFinished) return;
    this.#client.touch();
    if (this.sending.isReadyToEnd) {
      this.#endRequest();
      this.#lease.origin?.flush();
    } else if (this.sending.wantsMore) {
      this.#client.releaseReading();
    }
  }

  onResponseMoved(): void {
    if (this.isFinished) return;
    this.#client.touch();
    if (this.responseSender.isReadyToEnd) this.#endResponse();
    else if (this.responseSender.wantsMore) this.#lease.origin?.release();
  }

  // Towards the origin

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

  /** Response phases run on a rule's response as on an origin's. */
  #respondByRule(response: SyntheticResponse): void {
    if (this.isFinished || !this.#client.mayRespond) return;
    this.#setResponse(response);
    this.#runResponsePhases();
    this.#client.flush();
  }

  /** Lets the client finish a small body first, so that it is recorded and the connection can be reused. */
  #afterBody(responseSender: () => void): void {
    if (this.sending.isComplete || isKnownLonger(this.#head.framing, DRAINED_BODY_BYTES)) return responseSender();
    this.#respondAfterBody = responseSender;
    this.#client.askForBody();
  }

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
      connected: (origin) => this.#connected(origin, request),
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

  get requestHasBody(): boolean {
    return hasBody(this.sending.framing);
  }

  #originRequest({ authority, sentPath }: ForwardPlan): OriginRequest {
    const { upgrade, keepAlive } = this.#head;
    const { framing } = this.sending;
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

  #connected(origin: Origin, request: OriginRequest): void {
    this.#send(origin, request);
    origin.flush();
    this.#client.releaseReading();
  }

  #send(origin: Origin, request: OriginRequest): void {
    this.#lease.origin = origin;
    this.serverAddress = origin.address;
    this.upstreamTls = origin.tls;
    this.moments.sendStarted = performance.now();
    try {
      if (this.sending.send(origin, this, request)) this.#endRequest();
    } catch (error) {
      if (!(error instanceof Http1Error)) throw error;
      const message = "The request has a part that cannot be sent";
      this.fail({ stage: "send", side: "internal", code: "INTERNAL", message, cause: error });
    }
  }

  #endRequest(): void {
    this.sending.end(this.request.trailers);
    this.moments.sendEnded = performance.now();
  }

  onOriginDrain(): void {
    this.sending.resume();
    if (this.sending.wantsMore) this.#client.releaseReading();
  }

  onOriginLost(outcome: LostOutcome, failure: Failure): void {
    this.#lease.origin = undefined;
    const mayRepeat = outcome === "retry" || (outcome === "unseen" && this.sending.isRepeatable);
    if (mayRepeat && this.#plan.kind === "forward") {
      this.#isRetry = true;
      this.sending.again();
      return this.#forward(this.#plan);
    }
    this.fail(failure);
  }

  // Response side

  onInformational(head: ResponseHead): void {
    this.#client.sendInformational(head.status, head.reason, informationalFields(head.fields));
  }

  onResponseHead(head: ResponseHead): void {
    const { pipeline } = this.services;
    this.moments.firstByte = this.#lease.origin?.firstByteMs ?? performance.now();
    this.sending.accepted();
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
    this.responseSender.framing = head.framing;
    this.#runResponsePhases();
  }

  #runResponsePhases(): void {
    const verdict = this.services.pipeline.responseHead(this);
    if (!(verdict instanceof Promise)) return this.#onResponseVerdict(verdict);
    if (!this.responseSender.isWaitedFor) this.#lease.origin?.hold();
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
    if (this.originalResponse !== undefined) this.originalResponse.body ??= this.responseSender.held.joined();
    this.#lease.release();
    this.respond(verdict.response);
  }

  #deliver(): void {
    this.state = RESPONDING;
    try {
      this.responseSender.start(this.response as ResponseMessage);
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
    if (this.responseSender.isReadyToEnd) this.#endResponse();
  }

  onResponseData(piece: Buffer): void {
    if (this.isFinished) return;
    this.responseBody.add(piece);
    if (!this.responseSender.add(piece)) this.#lease.origin?.hold();
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
    this.responseSender.complete();
    if (this.responseSender.isReadyToEnd) this.#endResponse();
  }

  #endResponse(): void {
    this.responseSender.end(this.response?.trailers);
    this.#finish(this.#failure === undefined ? COMPLETED : { step: "failed", failure: this.#failure });
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

  // End

  #finish(state: ExchangeState): void {
    this.#end(state);
    this.#client.flush();
    this.#client.exchangeEnded();
  }

  #end(state: ExchangeState): void {
    this.#lease.release();
    this.settle(state);
    this.sending.abandon();
    this.responseSender.abandon();
  }
}

interface LeaseHolder {
  readonly request: Readonly<RequestMessage>;
  readonly moments: Moments;
}

function requirementOf(
  { isHttp2Known, destination }: ForwardPlan,
  { upgrade }: OriginRequest,
  holder: LeaseHolder,
): UpstreamRequirement {
  if (upgrade === undefined) return isHttp2Known ? "http2" : "any";
  const isStream = holder.request.version === "HTTP/2" && (isHttp2Known || destination.secure);
  return isStream ? "websocket" : "upgrade";
}
