import type { Moments, RequestMessage } from "#exchange/exchange.ts";
import type { Origin, OriginRequest } from "#upstream/origin.ts";
import type { OriginResult, UpstreamRequirement } from "./upstream-connections.ts";
import type { ExchangeClient } from "./exchange-client.ts";
import type { ForwardPlan } from "./request-plan.ts";

/** The exchange that needs an origin. */
interface LeaseHolder {
  readonly request: Readonly<RequestMessage>;
  readonly moments: Moments;
}

/** What one exchange has of its client's origins: it looks for one, holds it, and lets it go. */
export class UpstreamLease {
  /** Set while the exchange has one. */
  origin: Origin | undefined;
  readonly #client: ExchangeClient;
  /** Set while a connection is waited for. */
  #abandonDial: (() => void) | undefined;

  constructor(client: ExchangeClient) {
    this.#client = client;
  }

  /** What takes the request now. What goes out for the second time needs something new. */
  ready(plan: ForwardPlan, request: OriginRequest, holder: LeaseHolder): Origin | undefined {
    if (request.isRetry) return undefined;
    const { origins } = this.#client;
    const { destination } = plan;
    const requirement = requirementOf(plan, request, holder);
    return origins.ready(destination, requirement) ?? origins.inherit(destination, requirement, request);
  }

  /** Has a connection opened for the request, of which `result` hears unless the claim is released before. */
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

  /** The origin is not needed any more, in whatever state it is. */
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

function requirementOf(
  { isHttp2Known, destination }: ForwardPlan,
  { upgrade }: OriginRequest,
  holder: LeaseHolder,
): UpstreamRequirement {
  if (upgrade === undefined) return isHttp2Known ? "http2" : "any";
  const isStream = holder.request.version === "HTTP/2" && (isHttp2Known || destination.secure);
  return isStream ? "websocket" : "upgrade";
}
