import { reasonPhrase } from "@headworks/http-fields";
import type { ByteSocket } from "@headworks/sockets";
import { BodyCapture } from "#exchange/body.ts";
import { type ClientFacts, type Content, type HttpVersion, type Moments, newMoments } from "#exchange/exchange.ts";
import { type Failure, failureStatus } from "#exchange/failure.ts";
import type { SyntheticResponse } from "#exchange/phases.ts";
import { LiveExchange } from "./http-exchange.ts";
import type { ProxyServices } from "./proxy-services.ts";

/** Ends a connection at shutdown; kept by the listener or by an outer connection. */
export interface ConnectionHandle {
  /** Makes the current exchange the last one. */
  drain(): void;
  /** Ends at once; exchanges in flight fail with this reason. */
  abort(failure: Failure): void;
}

export interface ConnectHead {
  /** `host:port` as written. */
  readonly target: string;
  readonly fields: readonly string[];
}

/** The client side of a tunnel requested by CONNECT. */
export interface TunnelClient {
  /** Carries the tunnel once it is accepted; paused. */
  readonly socket: ByteSocket;
  readonly version: HttpVersion;
  accept(): void;
  /** Responds with an error and closes. */
  refuse(response: SyntheticResponse): void;
}

/** Handles a CONNECT; `first` are bytes behind its head. Undefined if nothing follows. */
export type OpenTunnel = (
  client: TunnelClient,
  head: ConnectHead,
  first: Buffer | undefined,
) => ConnectionHandle | undefined;

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

  filterBody(): void {
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
