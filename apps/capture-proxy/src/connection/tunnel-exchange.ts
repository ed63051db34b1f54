import { reasonPhrase } from "@headworks/http-fields";
import { BodyCapture } from "#exchange/body.ts";
import { newMoments } from "#exchange/exchange.ts";
import type { ClientFacts, Content, HttpVersion, Moments } from "#exchange/exchange.ts";
import { failureStatus } from "#exchange/failure.ts";
import type { Failure } from "#exchange/failure.ts";
import { LiveExchange } from "./live-exchange.ts";
import type { ProxyServices } from "./proxy-services.ts";

const FAILURE_TEXT_BYTES = 65_536;

const UNREAD: Content = { kind: "gone" };

/**
 * The entry of a tunnel: bytes are counted, not recorded. Its URL is `https://host:443/` for port 443, otherwise
 * `tcp://host:port/`. After a failure the body contains the reason.
 */
export class TunnelExchange extends LiveExchange {
  constructor(
    services: ProxyServices,
    client: ClientFacts,
    target: {
      readonly host: string;
      readonly port: number;
      readonly fields: string[];
      /** HTTP version of the CONNECT; HTTP/1.1 by default. */
      readonly version?: HttpVersion;
    },
    moments: Moments = newMoments(),
  ) {
    const { host, port, fields, version = "HTTP/1.1" } = target;
    super(services, {
      client,
      isRecorded: services.policy().records(host),
      request: {
        method: "CONNECT",
        scheme: port === 443 ? "https" : "tcp",
        host,
        port,
        path: "/",
        version,
        fields,
        trailers: undefined,
      },
      requestBody: new BodyCapture(0, undefined),
      responseBody: new BodyCapture(0, undefined),
      moments,
    });
    moments.requestEnded = moments.started;
    this.passthrough = true;
    this.state = { step: "forwarding" };
    this.announce();
  }

  get requestHasBody(): boolean {
    return false;
  }

  requestContent(): Promise<Content> {
    return Promise.resolve(UNREAD);
  }

  responseContent(): Promise<Content> {
    return Promise.resolve(UNREAD);
  }

  setRequestContent(): void {
    throw new TypeError("A tunnel is carried, not read");
  }

  setResponseContent(): void {
    throw new TypeError("A tunnel is carried, not read");
  }

  opened(serverAddress: string): void {
    this.serverAddress = serverAddress;
    this.moments.firstByte = performance.now();
    this.response = {
      status: 200,
      reason: "Connection established",
      version: this.request.version,
      fields: [],
      trailers: undefined,
    };
    this.state = { step: "responding" };
    this.services.pipeline.responding(this);
  }

  /** Called once. A failure becomes the response if there was none yet. */
  ended(failure: Failure | undefined): void {
    if (this.isFinished) return;
    if (failure && this.response === undefined) this.#recordFailure(failure);
    this.settle(failure ? { step: "failed", failure } : { step: "completed" });
  }

  /** The entry's response to a failure. */
  protected replyTo(failure: Failure): { readonly status: number; readonly text: string } {
    return { status: failureStatus(failure), text: `${failure.code}: ${failure.message}\n` };
  }

  #recordFailure(failure: Failure): void {
    const { status, text } = this.replyTo(failure);
    this.source = "slice";
    this.response = {
      status,
      reason: reasonPhrase(status),
      version: this.request.version,
      fields: ["Content-Type", "text/plain; charset=utf-8"],
      trailers: undefined,
    };
    this.responseBody = new BodyCapture(FAILURE_TEXT_BYTES, this.isRecorded ? this.services.spool : undefined);
    this.responseBody.add(Buffer.from(text, "utf8"));
  }
}
