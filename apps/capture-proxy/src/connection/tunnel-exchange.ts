// Tested by ../../test/engine-flow.test.ts
import { reasonPhrase } from "@headworks/http-fields";
import { BodyCapture } from "#exchange/body.ts";
import { newExchangeId } from "#exchange/exchange-id.ts";
import { newMoments } from "#exchange/exchange.ts";
import type {
  ClientFacts,
  Exchange,
  ExchangeState,
  Moments,
  RequestMessage,
  ResponseMessage,
} from "#exchange/exchange.ts";
import { failureStatus } from "#exchange/failure.ts";
import type { Failure } from "#exchange/failure.ts";
import type { ProxyServices } from "./proxy-services.ts";

/**
 * The entry of a tunnel: bytes are counted, not read. Named by its target, `https://host:443/` as `https://host/`,
 * every other port as `tcp://host:port/`. On failure the body says why.
 */
export class TunnelExchange implements Exchange {
  readonly id: string;
  readonly startedAtMs: number;
  readonly client: ClientFacts;
  readonly request: RequestMessage;
  response: ResponseMessage | undefined = undefined;
  readonly requestBody = new BodyCapture(0, undefined);
  readonly responseBody: BodyCapture;
  readonly moments: Moments;
  state: ExchangeState = { step: "forwarding" };
  source: "upstream" | "slice" = "upstream";
  readonly passthrough = true;
  readonly modified = false;
  serverAddress: string | undefined = undefined;
  readonly upstreamTls = undefined;
  readonly isRecorded: boolean;
  readonly annotations = undefined;
  readonly #services: ProxyServices;
  #isOver = false;

  constructor(
    services: ProxyServices,
    client: ClientFacts,
    target: { readonly host: string; readonly port: number; readonly fields: string[] },
    moments: Moments = newMoments(),
  ) {
    const { host, port, fields } = target;
    this.#services = services;
    this.startedAtMs = Date.now();
    this.id = newExchangeId(this.startedAtMs);
    this.client = client;
    this.isRecorded = services.policy().records(host);
    this.request = {
      method: "CONNECT",
      scheme: port === 443 ? "https" : "tcp",
      host,
      port,
      path: "/",
      version: "HTTP/1.1",
      fields,
      trailers: undefined,
    };
    this.responseBody = new BodyCapture(65_536, this.isRecorded ? services.spool : undefined);
    this.moments = moments;
    moments.requestEnded = moments.started;
    services.gauges.activeExchanges += 1;
    services.pipeline.started(this);
  }

  /** The tunnel is open. */
  opened(serverAddress: string): void {
    this.serverAddress = serverAddress;
    this.moments.firstByte = performance.now();
    this.response = {
      status: 200,
      reason: "Connection established",
      version: "HTTP/1.1",
      fields: [],
      trailers: undefined,
    };
    this.state = { step: "responding" };
    this.#services.pipeline.responding(this);
  }

  /** The end, exactly once. A failure becomes the answer when there was none yet. */
  ended(failure: Failure | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.moments.ended = performance.now();
    if (failure) {
      this.state = { step: "failed", failure };
      if (this.response === undefined) this.#recordFailure(failure);
    } else {
      this.state = { step: "completed" };
    }
    this.#services.gauges.activeExchanges -= 1;
    this.#services.pipeline.finished(this);
  }

  #recordFailure(failure: Failure): void {
    const status = failureStatus(failure);
    this.source = "slice";
    this.response = {
      status,
      reason: reasonPhrase(status),
      version: "HTTP/1.1",
      fields: ["Content-Type", "text/plain; charset=utf-8"],
      trailers: undefined,
    };
    this.responseBody.add(Buffer.from(`${failure.code}: ${failure.message}\n`, "utf8"));
    this.responseBody.end();
  }
}
