// Tested by ../../test/engine-flow.test.ts
import type { BodyCapture } from "#exchange/body.ts";
import { newExchangeId } from "#exchange/exchange-id.ts";
import { exchangeUrl } from "#exchange/exchange.ts";
import type {
  ClientFacts,
  Exchange,
  ExchangeState,
  Moments,
  RequestMessage,
  ResponseMessage,
  UpstreamTlsFacts,
} from "#exchange/exchange.ts";
import type { ProxyServices } from "./proxy-services.ts";

/** What is fixed when an exchange begins. */
export interface ExchangeStart {
  readonly client: ClientFacts;
  readonly request: RequestMessage;
  readonly isRecorded: boolean;
  readonly requestBody: BodyCapture;
  readonly responseBody: BodyCapture;
  readonly moments: Moments;
}

/**
 * An exchange in flight as slices see it, whatever carries it: announced when it begins, and settled exactly once when
 * it ends.
 */
export abstract class LiveExchange implements Exchange {
  readonly id: string;
  readonly startedAtMs: number;
  readonly client: ClientFacts;
  request: RequestMessage;
  response: ResponseMessage | undefined = undefined;
  readonly requestBody: BodyCapture;
  responseBody: BodyCapture;
  readonly moments: Moments;
  state: ExchangeState = { step: "receiving" };
  source: "upstream" | "slice" = "upstream";
  passthrough = false;
  modified = false;
  serverAddress: string | undefined = undefined;
  upstreamTls: UpstreamTlsFacts | undefined = undefined;
  readonly isRecorded: boolean;
  annotations: Readonly<Record<string, string>> | undefined = undefined;
  protected readonly services: ProxyServices;
  #isOver = false;

  constructor(services: ProxyServices, start: ExchangeStart) {
    this.services = services;
    this.startedAtMs = Date.now();
    this.id = newExchangeId(this.startedAtMs);
    this.client = start.client;
    this.request = start.request;
    this.requestBody = start.requestBody;
    this.responseBody = start.responseBody;
    this.moments = start.moments;
    this.isRecorded = start.isRecorded;
  }

  /** True once the answer ended or the exchange failed for good. */
  get isOver(): boolean {
    return this.#isOver;
  }

  protected announce(): void {
    this.services.gauges.activeExchanges += 1;
    this.services.pipeline.started(this);
  }

  /** The end: false when it had come already. */
  protected settle(state: ExchangeState): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
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
