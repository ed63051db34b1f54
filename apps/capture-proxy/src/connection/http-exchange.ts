// Tested by ../../test/engine-flow.test.ts
import { reasonPhrase } from "@headworks/http-fields";
import { hasBody, Http1Error, requestHeadText, responseHeadText } from "@headworks/http1";
import type { RawFields, RequestHead, ResponseHead } from "@headworks/http1";
import type { ExchangeState, RequestMessage, ResponseMessage } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { SyntheticResponse, Verdict } from "#exchange/phases.ts";
import type { Dialled } from "#upstream/dial.ts";
import type { AnswerHandler, OriginConnection } from "#upstream/origin-connection.ts";
import { failureResponse } from "./failure-page.ts";
import { informationalFields, requestFields, switchFields } from "./forwarded-fields.ts";
import { isKnownLonger } from "./held-body.ts";
import type { HttpConnection } from "./http-connection.ts";
import { HeldExchange } from "./held-exchange.ts";
import { replanned } from "./request-plan.ts";
import type { ExchangePlan, ForwardPlan } from "./request-plan.ts";

const FORWARDING: ExchangeState = { step: "forwarding" };
const RESPONDING: ExchangeState = { step: "responding" };
const COMPLETED: ExchangeState = { step: "completed" };

/** An answer made here waits for the request body up to this size, so that the connection can live on. */
const DRAINED_BODY_BYTES = 1_048_576;

/**
 * One HTTP/1.1 exchange: takes a request from its client connection, runs the phases, sends it to the origin, and
 * brings the answer back. It is the `Exchange` that slices see and the handler of the origin's answer in one object.
 */
export class HttpExchange extends HeldExchange implements AnswerHandler {
  readonly #connection: HttpConnection;
  readonly #head: RequestHead;
  #plan: ExchangePlan;
  #origin: OriginConnection | undefined;
  #abandonDial: (() => void) | undefined;
  #isRetry = false;
  /** Rules decide, and the bytes they wait for are here: nobody is late. */
  #isDeciding = false;
  #answerAfterBody: (() => void) | undefined;

  constructor(connection: HttpConnection, head: RequestHead, request: RequestMessage, plan: ExchangePlan) {
    super(connection, head, request, plan.kind === "forward" && connection.services.policy().records(request.host));
    this.#connection = connection;
    this.#head = head;
    this.#plan = plan;
  }

  /** Runs the request phases, then forwards or answers. */
  start(): void {
    this.announce();
    if (this.#plan.kind === "own-page") {
      const { response } = this.#plan;
      return this.#afterBody(() => this.respond(response));
    }
    const verdict = this.services.pipeline.requestHead(this);
    if (!(verdict instanceof Promise)) return this.#decided(verdict);
    this.#isDeciding = true;
    // A client without a body is read on, so that its going away is noticed.
    if (hasBody(this.#head.framing) && !this.sending.isWaitedFor) this.#connection.holdReading();
    void verdict.then((later) => {
      if (this.isOver) return;
      this.#isDeciding = false;
      this.#decided(later);
      this.#origin?.writer.flush();
      this.#connection.releaseReading();
    });
  }

  /** True while bytes of the request body are still expected from the client. */
  get isReceiving(): boolean {
    return !this.sending.isComplete;
  }

  /** True while it is neither the client nor the origin that is waited for. */
  get isDeciding(): boolean {
    return this.#isDeciding && !this.sending.isWaitedFor && !this.answer.isWaitedFor;
  }

  /** Answers without an origin, and without asking anybody. */
  respond(response: SyntheticResponse): void {
    if (this.isOver || !this.#connection.state.mayAnswer) return;
    this.#answerIs(response);
    this.#deliver();
    this.#connection.writer.flush();
  }

  /** The answer is one made here; its body is held complete. */
  #answerIs(response: SyntheticResponse): void {
    this.source = "slice";
    this.moments.firstByte = performance.now();
    this.response = {
      status: response.status,
      reason: response.reason ?? reasonPhrase(response.status),
      version: "HTTP/1.1",
      fields: response.fields,
      trailers: undefined,
    };
    this.services.pipeline.responding(this);
    this.answer.replaceAll(response.body);
    this.recaptureAnswer(response.body);
  }

  /** Ends the exchange with a failure: an error page when nothing was answered yet, else a cut connection. */
  fail(failure: Failure): void {
    if (this.isOver) return;
    if (failure.code === "INTERNAL") this.services.log.error({ err: failure.cause }, "An exchange failed");
    this.#releaseOrigin();
    this.state = { step: "failed", failure };
    if (this.#connection.state.mayAnswer && failure.code !== "CLIENT_ABORTED") {
      this.respond(failureResponse(failure, this.#head.fields));
      return;
    }
    this.#end(this.state);
    // A body that only the end of the connection delimits would look complete after a clean close.
    this.#connection.exchangeBroken(this.answer.endsWithConnection);
  }

  #abort({ reason, closes }: Verdict & { kind: "abort" }): void {
    const failure: Failure = { stage: "policy", side: "internal", code: "BLOCKED", message: reason };
    if (closes !== true) return this.fail(failure);
    this.#end({ step: "failed", failure });
    this.#connection.exchangeBroken(true);
  }

  protected readRequestOn(): void {
    this.#askForBody();
    this.#connection.releaseReading();
  }

  protected readAnswerOn(): void {
    this.#origin?.release();
  }

  // Request side

  onRequestData(piece: Buffer): void {
    if (this.isOver) return;
    this.requestBody.add(piece);
    if (this.#answerAfterBody !== undefined) {
      if (this.requestBody.sizeBytes > DRAINED_BODY_BYTES) this.#answerAfterBody();
      return;
    }
    if (!this.sending.add(piece)) this.#connection.holdReading();
  }

  onRequestTrailers(fields: RawFields): void {
    this.request.trailers = fields;
  }

  onRequestEnd(): void {
    const mayEnd = this.sending.complete();
    this.moments.requestEnded = performance.now();
    this.requestBody.end();
    if (this.#answerAfterBody !== undefined) this.#answerAfterBody();
    else if (mayEnd) this.#endRequest();
  }

  /** What one read of the client caused goes to the origin. */
  onRequestBatch(): void {
    if (this.sending.isSent && this.#origin?.writer.flush() === false) this.#connection.holdReading();
  }

  /** The client takes more of the answer. */
  onClientDrain(): void {
    this.answer.resume();
    // While the answer's head is still being decided on, its body must stay where it is.
    if (this.answer.hasStarted && this.answer.wantsMore) this.#origin?.release();
  }

  /** The line carried some of the request on. */
  onRequestMoved(): void {
    if (this.isOver) return;
    this.#connection.touch();
    if (this.sending.isReadyToEnd) {
      this.#endRequest();
      this.#origin?.writer.flush();
    } else if (this.sending.wantsMore) {
      this.#connection.releaseReading();
    }
  }

  /** The line carried some of the answer on. */
  onAnswerMoved(): void {
    if (this.isOver) return;
    this.#connection.touch();
    if (this.answer.isReadyToEnd) this.#endAnswer();
    else if (this.answer.wantsMore) this.#origin?.release();
  }

  // Towards the origin

  #decided(verdict: Verdict): void {
    switch (verdict.kind) {
      case "respond":
        return this.#afterBody(() => this.#answerByRule(verdict.response));
      case "abort":
        return this.#abort(verdict);
      default:
        if (this.#plan.kind === "forward") this.#forward(this.#plan);
    }
  }

  /** A rule made the answer; answer rules see it as they see an origin's. */
  #answerByRule(response: SyntheticResponse): void {
    if (this.isOver || !this.#connection.state.mayAnswer) return;
    this.#answerIs(response);
    this.#runAnswerPhases();
    this.#connection.writer.flush();
  }

  /** Lets the client finish a small body first: it is part of the record, and the connection can be kept. */
  #afterBody(answer: () => void): void {
    if (this.sending.isComplete || isKnownLonger(this.#head.framing, DRAINED_BODY_BYTES)) return answer();
    this.#answerAfterBody = answer;
    this.#askForBody();
  }

  #askForBody(): void {
    if (!this.#connection.state.bodyWanted()) return;
    this.#connection.writer.text(responseHeadText(100, "Continue", []));
    this.#connection.writer.flush();
  }

  #forward(planned: ForwardPlan): void {
    this.state = FORWARDING;
    const { originalRequest } = this;
    const plan = originalRequest === undefined ? planned : replanned(planned, originalRequest.message, this.request);
    const idle = this.#isRetry ? undefined : this.#connection.origins.idle(plan.destination);
    if (idle) return this.#send(idle, plan);
    const { services } = this;
    services.gauges.pendingRequests += 1;
    this.#abandonDial = services.dialer.dial(plan.destination, this.moments, {
      connected: (dialled) => this.#connected(dialled, plan),
      failed: (failure) => {
        this.#dialEnded();
        this.fail(failure);
      },
    });
  }

  #connected(dialled: Dialled, plan: ForwardPlan): void {
    this.#dialEnded();
    const origin = this.#connection.origins.adopt(plan.destination, dialled);
    this.#send(origin, plan);
    origin.writer.flush();
    this.#connection.releaseReading();
  }

  #dialEnded(): void {
    if (this.#abandonDial === undefined) return;
    this.#abandonDial = undefined;
    this.services.gauges.pendingRequests -= 1;
  }

  #send(origin: OriginConnection, plan: ForwardPlan): void {
    const head = this.#head;
    this.#origin = origin;
    this.serverAddress = origin.address;
    this.upstreamTls = origin.tls;
    const fields = requestFields(this.request.fields, this.sending.framing, head.upgrade, plan.authority);
    origin.begin(
      this,
      {
        method: this.request.method,
        hasBody: hasBody(this.sending.framing),
        keepAlive: head.keepAlive,
        isRetry: this.#isRetry,
      },
      head.upgrade,
    );
    this.moments.sendStarted = performance.now();
    const isAll = this.sending.send(origin, requestHeadText(this.request.method, this.request.path, fields));
    if (isAll) this.#endRequest();
  }

  #endRequest(): void {
    this.sending.end(this.request.trailers);
    this.moments.sendEnded = performance.now();
  }

  onOriginDrain(): void {
    this.sending.resume();
    if (this.sending.wantsMore) this.#connection.releaseReading();
  }

  onOriginLost(outcome: "retry" | "fail", failure: Failure): void {
    this.#origin = undefined;
    if (outcome === "retry" && this.#plan.kind === "forward") {
      this.#isRetry = true;
      this.sending.again();
      return this.#forward(this.#plan);
    }
    this.fail(failure);
  }

  // Answer side

  onInformational(head: ResponseHead): void {
    if (!this.#connection.state.informational(head.status)) return;
    this.#connection.writer.text(responseHeadText(head.status, head.reason, informationalFields(head.fields)));
  }

  onAnswerHead(head: ResponseHead): void {
    const { pipeline } = this.services;
    this.moments.firstByte = this.#origin?.firstByteMs ?? performance.now();
    this.state = RESPONDING;
    this.response = {
      status: head.status,
      reason: head.reason,
      version: head.version === "1.1" ? "HTTP/1.1" : "HTTP/1.0",
      fields: head.fields,
      trailers: undefined,
    };
    pipeline.responding(this);
    if (head.status === 101) return;
    this.answer.framing = head.framing;
    this.#runAnswerPhases();
  }

  #runAnswerPhases(): void {
    const verdict = this.services.pipeline.responseHead(this);
    if (!(verdict instanceof Promise)) return this.#answerDecided(verdict);
    this.#isDeciding = true;
    if (!this.answer.isWaitedFor) this.#origin?.hold();
    void verdict.then((later) => {
      if (this.isOver) return;
      this.#isDeciding = false;
      this.#answerDecided(later);
      this.#connection.writer.flush();
      if (!this.isOver) this.#origin?.release();
    });
  }

  #answerDecided(verdict: Verdict): void {
    if (verdict.kind === "abort") return this.#abort(verdict);
    if (verdict.kind === "continue") return this.#deliver();
    this.changeResponse();
    if (this.originalResponse !== undefined) this.originalResponse.body ??= this.answer.held.joined();
    this.#releaseOrigin();
    this.respond(verdict.response);
  }

  #deliver(): void {
    if (this.state.step !== "failed") this.state = RESPONDING;
    try {
      this.answer.start(this.response as ResponseMessage);
    } catch (error) {
      if (!(error instanceof Http1Error)) throw error;
      return this.fail({
        stage: "receive",
        side: "upstream",
        code: "UPSTREAM_PROTOCOL",
        message: "The answer has a field that cannot be passed on",
        cause: error,
      });
    }
    if (this.answer.isReadyToEnd) this.#endAnswer();
  }

  onAnswerData(piece: Buffer): void {
    if (this.isOver) return;
    this.responseBody.add(piece);
    if (!this.answer.add(piece)) this.#origin?.hold();
  }

  onAnswerTrailers(fields: RawFields): void {
    if (this.response) this.response.trailers = fields;
  }

  onAnswerBatch(): void {
    this.#connection.touch();
    if (!this.#connection.writer.flush()) this.#origin?.hold();
  }

  onAnswerEnd(): void {
    this.#origin = undefined;
    if (this.isOver) return;
    this.answer.complete();
    if (this.answer.isReadyToEnd) this.#endAnswer();
  }

  #endAnswer(): void {
    this.answer.end(this.response?.trailers);
    this.#finish(this.state.step === "failed" ? this.state : COMPLETED);
  }

  /** After a 101 both connections belong to the new protocol; the exchange lasts as long as they do. */
  onProtocolSwitched(): void {
    const origin = this.#origin;
    if (origin === undefined || this.response === undefined) return;
    this.#origin = undefined;
    this.#connection.writer.text(responseHeadText(101, this.response.reason, switchFields(this.response.fields)));
    this.#connection.switchProtocols(origin.takeOver(), this);
  }

  /** The tunnel of a switched protocol ended. */
  tunnelEnded(failure: Failure | undefined): void {
    if (this.isOver) return;
    this.#end(failure ? { step: "failed", failure } : COMPLETED);
  }

  // End

  #finish(state: ExchangeState): void {
    this.#end(state);
    this.#connection.writer.flush();
    this.#connection.exchangeEnded();
  }

  #end(state: ExchangeState): void {
    this.#releaseOrigin();
    this.settle(state);
    this.sending.abandon();
    this.answer.abandon();
  }

  /** The origin's connection is not needed any more, in whatever state it is. */
  #releaseOrigin(): void {
    this.#abandonDial?.();
    this.#dialEnded();
    this.#origin?.destroy();
    this.#origin = undefined;
  }
}
