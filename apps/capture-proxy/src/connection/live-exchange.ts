import { BodyCapture } from "#exchange/body.ts";
import {
  type ClientFacts,
  type Content,
  type Exchange,
  type ExchangeState,
  exchangeUrl,
  type Moments,
  newExchangeId,
  type Original,
  type RequestMessage,
  type ResponseMessage,
  type TraceStep,
  type UpstreamTlsFacts,
} from "#exchange/exchange.ts";
import type { ThrottledPace } from "#exchange/bandwidth-limiter.ts";
import type { OpenTap } from "./message-tap.ts";
import type { ProxyServices } from "./proxy-services.ts";
import { websocketTap } from "./websocket-tap.ts";

export interface ExchangeStart {
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

  protected newCapture(side: "request" | "response"): BodyCapture {
    const { maxBodyBytes, capturesRequestBodies, capturesResponseBodies } = this.services.policy();
    const captures = side === "request" ? capturesRequestBodies : capturesResponseBodies;
    return new BodyCapture(maxBodyBytes, this.isRecorded && captures ? this.services.spool : undefined);
  }

  protected announce(): void {
    this.services.gauges.activeExchanges += 1;
    this.services.pipeline.started(this);
  }

  /** Returns false if the exchange was already settled. */
  protected settle(state: ExchangeState): boolean {
    if (this.#isFinished) return false;
    this.#isFinished = true;
    this.moments.ended = performance.now();
    this.state = state;
    this.requestBody.end();
    this.responseBody.end();
    this.services.gauges.activeExchanges -= 1;
    this.services.pipeline.finished(this);
    if (this.services.log.isLevelEnabled("debug")) this.#log();
    return true;
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
