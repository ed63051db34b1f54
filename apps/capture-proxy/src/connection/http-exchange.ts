// Tested by ../../test/engine-flow.test.ts
import { reasonPhrase } from "@headworks/http-fields";
import {
  fieldValue,
  hasBody,
  hasField,
  Http1Error,
  LAST_CHUNK,
  lastChunkWithTrailers,
  NO_BODY,
  removeField,
  requestHeadText,
  responseHeadText,
} from "@headworks/http1";
import type { AnswerStart, Framing, RawFields, RequestHead, ResponseHead } from "@headworks/http1";
import { BodyCapture } from "#exchange/body.ts";
import type { BodySpool } from "#exchange/body.ts";
import { newMoments } from "#exchange/exchange.ts";
import type { ExchangeState, RequestMessage, ResponseMessage } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { SyntheticResponse, Verdict } from "#exchange/phases.ts";
import type { Destination, Dialled } from "#upstream/dial.ts";
import type { AnswerHandler, OriginConnection } from "#upstream/origin-connection.ts";
import { failureResponse } from "./failure-page.ts";
import { answerFields, informationalFields, requestFields, switchFields } from "./forwarded-fields.ts";
import type { HttpConnection } from "./http-connection.ts";
import { LiveExchange } from "./live-exchange.ts";

const FORWARDING: ExchangeState = { step: "forwarding" };
const RESPONDING: ExchangeState = { step: "responding" };
const COMPLETED: ExchangeState = { step: "completed" };

/** How a request that was read is to be forwarded. */
export type ExchangePlan =
  | {
      readonly kind: "forward";
      readonly destination: Destination;
      /** What Host must say; undefined to leave it as the client wrote it. */
      readonly authority: string | undefined;
    }
  /** A page of our own; neither recorded nor open to rules. */
  | { readonly kind: "own-page"; readonly response: SyntheticResponse };

type ForwardPlan = ExchangePlan & { kind: "forward" };

/** Methods whose requests change nothing at the origin (RFC 9110 section 9.2.1). */
const REPEATABLE = new Set(["GET", "HEAD", "OPTIONS"]);

/** An answer made here waits for the request body up to this size, so that the connection can live on. */
const DRAINED_BODY_BYTES = 1_048_576;

/**
 * One HTTP/1.1 exchange: takes a request from its client connection, runs the phases, sends it to the origin, and
 * brings the answer back. It is the `Exchange` that slices see and the handler of the origin's answer in one object.
 */
export class HttpExchange extends LiveExchange implements AnswerHandler {
  readonly #connection: HttpConnection;
  readonly #head: RequestHead;
  readonly #plan: ExchangePlan;
  #origin: OriginConnection | undefined;
  #abandonDial: (() => void) | undefined;
  /** Body pieces that came before there was a connection to send them on. */
  #waiting: Buffer[] | undefined;
  #isRequestComplete = false;
  #isSent = false;
  #isRetry = false;
  #answer: AnswerStart | undefined;
  #answerAfterBody: SyntheticResponse | undefined;

  constructor(connection: HttpConnection, head: RequestHead, request: RequestMessage, plan: ExchangePlan) {
    const { services, facts } = connection;
    const policy = services.policy();
    const isRecorded = plan.kind === "forward" && policy.records(request.host);
    const spoolIf = (captures: boolean): BodySpool | undefined => (isRecorded && captures ? services.spool : undefined);
    super(services, {
      client: facts,
      request,
      isRecorded,
      requestBody: new BodyCapture(policy.maxBodyBytes, spoolIf(policy.capturesRequestBodies)),
      responseBody: new BodyCapture(policy.maxBodyBytes, spoolIf(policy.capturesResponseBodies)),
      moments: newMoments(),
    });
    this.#connection = connection;
    this.#head = head;
    this.#plan = plan;
  }

  /** Runs the request phases, then forwards or answers. */
  start(): void {
    this.announce();
    if (this.#plan.kind === "own-page") return this.#respondAfterBody(this.#plan.response);
    const verdict = this.services.pipeline.requestHead(this);
    if (!(verdict instanceof Promise)) return this.#decided(verdict);
    this.#connection.holdReading();
    void verdict.then((later) => {
      if (this.isOver) return;
      this.#decided(later);
      this.#origin?.writer.flush();
      this.#connection.releaseReading();
    });
  }

  /** True while bytes of the request body are still expected from the client. */
  get isReceiving(): boolean {
    return !this.#isRequestComplete;
  }

  /** Answers without an origin. */
  respond(response: SyntheticResponse): void {
    if (this.isOver || !this.#connection.state.mayAnswer) return;
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
    const hasNoBody = this.request.method === "HEAD" || response.status === 204 || response.status === 304;
    const framing: Framing = hasNoBody ? NO_BODY : { kind: "length", lengthBytes: response.body.length };
    const start = this.#connection.state.answerStarted(framing);
    this.#connection.writer.text(
      responseHeadText(this.response.status, this.response.reason, answerFields(response.fields, start)),
    );
    if (!hasNoBody && response.body.length > 0) {
      this.responseBody.add(response.body);
      this.#connection.writer.bytes(response.body);
    }
    this.#finish(this.state.step === "failed" ? this.state : COMPLETED);
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
    this.#connection.exchangeBroken(this.#answer === undefined || this.#answer.framing.kind === "until-close");
  }

  // Request side

  onRequestData(piece: Buffer): void {
    if (this.isOver) return;
    this.requestBody.add(piece);
    if (this.#answerAfterBody !== undefined) {
      if (this.requestBody.sizeBytes > DRAINED_BODY_BYTES) this.respond(this.#answerAfterBody);
      return;
    }
    if (this.#origin === undefined || !this.#isSent) {
      (this.#waiting ??= []).push(piece);
      this.#connection.holdReading();
      return;
    }
    this.#writeBody(this.#origin, piece);
  }

  onRequestTrailers(fields: RawFields): void {
    this.request.trailers = fields;
  }

  onRequestEnd(): void {
    this.#isRequestComplete = true;
    this.moments.requestEnded = performance.now();
    this.requestBody.end();
    if (this.#answerAfterBody !== undefined) this.respond(this.#answerAfterBody);
    else if (this.#origin !== undefined && this.#isSent) this.#endRequest(this.#origin);
  }

  /** What one read of the client caused goes to the origin. */
  onRequestBatch(): void {
    if (this.#origin !== undefined && this.#isSent && !this.#origin.writer.flush()) this.#connection.holdReading();
  }

  /** The client takes more of the answer. */
  onClientDrain(): void {
    // While the answer's head is still being decided on, its body must stay where it is.
    if (this.#answer !== undefined) this.#origin?.release();
  }

  // Towards the origin

  #decided(verdict: Verdict): void {
    switch (verdict.kind) {
      case "respond":
        return this.#respondAfterBody(verdict.response);
      case "abort":
        return this.fail({ stage: "policy", side: "internal", code: "BLOCKED", message: verdict.reason });
      default:
        if (this.#plan.kind === "forward") this.#forward(this.#plan);
    }
  }

  /** Lets the client finish a small body first: it is part of the record, and the connection can be kept. */
  #respondAfterBody(response: SyntheticResponse): void {
    const { framing } = this.#head;
    const isLong = framing.kind === "length" && framing.lengthBytes > DRAINED_BODY_BYTES;
    if (this.#isRequestComplete || isLong) return this.respond(response);
    this.#answerAfterBody = response;
    if (this.#connection.state.bodyWanted()) {
      this.#connection.writer.text(responseHeadText(100, "Continue", []));
      this.#connection.writer.flush();
    }
  }

  #forward(plan: ForwardPlan): void {
    this.state = FORWARDING;
    const isRepeatable = REPEATABLE.has(this.request.method) && !hasBody(this.#head.framing) && !this.#head.upgrade;
    const idle = this.#connection.idleOrigin(plan.destination, isRepeatable);
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
    const origin = this.#connection.adoptOrigin(plan.destination, dialled);
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
    const fields = requestFields(this.request.fields, head.framing, head.upgrade, plan.authority);
    if (bindsConnection(fieldValue(fields, "authorization"))) origin.isAuthenticated = true;
    origin.begin(
      this,
      {
        method: this.request.method,
        hasBody: hasBody(head.framing),
        keepAlive: head.keepAlive,
        isRetry: this.#isRetry,
      },
      head.upgrade,
    );
    this.moments.sendStarted = performance.now();
    origin.writer.text(requestHeadText(this.request.method, this.request.path, fields));
    this.#isSent = true;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) for (const piece of waiting) this.#writeBody(origin, piece);
    if (this.#isRequestComplete) this.#endRequest(origin);
  }

  #writeBody(origin: OriginConnection, piece: Buffer): void {
    if (this.#head.framing.kind === "chunked") origin.writer.chunk(piece);
    else origin.writer.bytes(piece);
  }

  #endRequest(origin: OriginConnection): void {
    if (this.#head.framing.kind === "chunked") {
      const { trailers } = this.request;
      origin.writer.text(trailers ? lastChunkWithTrailers(trailers) : LAST_CHUNK);
    }
    this.moments.sendEnded = performance.now();
    origin.requestSent();
  }

  onOriginDrain(): void {
    this.#connection.releaseReading();
  }

  onOriginLost(outcome: "retry" | "fail", failure: Failure): void {
    this.#origin = undefined;
    if (outcome === "retry" && this.#plan.kind === "forward") {
      this.#isRetry = true;
      this.#isSent = false;
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
    const verdict = pipeline.responseHead(this);
    if (!(verdict instanceof Promise)) return this.#answerDecided(verdict, head);
    this.#origin?.hold();
    void verdict.then((later) => {
      if (this.isOver) return;
      this.#answerDecided(later, head);
      this.#origin?.release();
    });
  }

  #answerDecided(verdict: Verdict, head: ResponseHead): void {
    if (verdict.kind === "respond") {
      this.#releaseOrigin();
      return this.respond(verdict.response);
    }
    if (verdict.kind === "abort") {
      return this.fail({ stage: "policy", side: "internal", code: "BLOCKED", message: verdict.reason });
    }
    const response = this.response as ResponseMessage;
    const start = this.#connection.state.answerStarted(head.framing);
    this.#answer = start;
    const fields = answerFields(response.fields, start);
    // RFC 9110, 8.6: a 204 has no Content-Length, whatever the origin says.
    if (response.status === 204) removeField(fields, "content-length");
    try {
      this.#connection.writer.text(responseHeadText(response.status, response.reason, fields));
    } catch (error) {
      if (!(error instanceof Http1Error)) throw error;
      this.fail({
        stage: "receive",
        side: "upstream",
        code: "UPSTREAM_PROTOCOL",
        message: "The answer has a field that cannot be passed on",
        cause: error,
      });
    }
  }

  onAnswerData(piece: Buffer): void {
    this.responseBody.add(piece);
    if (this.#answer === undefined) return;
    if (this.#answer.framing.kind === "chunked") this.#connection.writer.chunk(piece);
    else this.#connection.writer.bytes(piece);
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
    if (this.#answer?.framing.kind === "chunked") {
      const trailers = this.response?.trailers;
      this.#connection.writer.text(trailers ? lastChunkWithTrailers(trailers) : LAST_CHUNK);
    }
    this.#finish(COMPLETED);
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
  }

  /** The origin's connection is not needed any more, in whatever state it is. */
  #releaseOrigin(): void {
    this.#abandonDial?.();
    this.#dialEnded();
    this.#origin?.destroy();
    this.#origin = undefined;
  }
}

/** Whether a value of Authorization may speak for the whole connection: anything but the schemes that cannot. */
function bindsConnection(authorization: string | undefined): boolean {
  return authorization !== undefined && !/^(?:basic|bearer|digest) /i.test(authorization);
}

/** Whether a request offers WebSocket, whose entries carry the `ws` scheme. */
export function isWebSocketRequest(head: RequestHead): boolean {
  return head.upgrade === "websocket" && hasField(head.fields, "sec-websocket-key");
}
