import { type Moments, newMoments } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { type AttemptRequest, DirectAttempt, ProxyAttempt } from "./attempt.ts";
import { LOOP, LoopDetector, type OwnListeners } from "./loop-detector.ts";
import { type ApplicationProtocol, type Destination, type DialResult, ONLY_HTTP1 } from "./destination.ts";
import type { ProxyRoutes, Route } from "./proxy-route.ts";
import type { UpstreamTrust } from "./trust.ts";

export interface DialerParts {
  readonly trust: UpstreamTrust;
  readonly own: OwnListeners;
  /** Selects the route for each destination. */
  readonly routes: ProxyRoutes;
  /** This process's name in Via fields sent to upstream proxies. */
  readonly viaPseudonym: string;
  /** Timeout for everything before the first request, including the upstream proxy. */
  readonly timeoutMs: () => number;
}

/** Opens connections to origins, directly or through the upstream proxy, never to itself. */
export class Dialer {
  readonly #parts: DialerParts;
  readonly #loops: LoopDetector;

  constructor(parts: DialerParts) {
    this.#parts = parts;
    this.#loops = new LoopDetector(parts.viaPseudonym, (destination, result) => {
      const route = parts.routes.route(destination, parts.viaPseudonym);
      return start(this.#request(destination, newMoments(), result, ONLY_HTTP1), route);
    });
  }

  /** A request with this name in Via has looped. */
  get viaPseudonym(): string {
    return this.#parts.viaPseudonym;
  }

  /** Timeout for everything before the first request, in ms. */
  get timeoutMs(): number {
    return this.#parts.timeoutMs();
  }

  /** A dialer with other routes and otherwise the same settings. */
  withRoutes(routes: ProxyRoutes): Dialer {
    return new Dialer({ ...this.#parts, routes });
  }

  /**
   * Starts to connect and fills in `moments`. Returns the function that cancels; `result` is not called afterwards.
   * @param offered  ALPN protocols for a secure origin, in order of preference
   */
  dial(
    destination: Destination,
    moments: Moments,
    result: DialResult,
    offered: readonly ApplicationProtocol[] = ONLY_HTTP1,
  ): () => void {
    const loops = this.#loops;
    if (loops.recognizeProbe(destination.host)) return failSoon(result, LOOP);
    const route = this.#parts.routes.route(destination, this.#parts.viaPseudonym);
    if (route.kind !== "tunnel" || route.proxy.protocol !== "socks5") {
      return start(this.#request(destination, moments, result, offered), route);
    }
    if (loops.isLooping) return failSoon(result, LOOP);
    const counted = loops.counted(destination, result);
    const abandon = start(this.#request(destination, moments, counted.result, offered), route);
    return () => {
      counted.left();
      abandon();
    };
  }

  #request(
    destination: Destination,
    moments: Moments,
    result: DialResult,
    offered: readonly ApplicationProtocol[],
  ): AttemptRequest {
    const { trust, own, timeoutMs } = this.#parts;
    return { destination, moments, result, offered, trust, own, timeoutMs: timeoutMs() };
  }
}

/** Returns the function that cancels. */
function start(request: AttemptRequest, route: Route): () => void {
  switch (route.kind) {
    case "direct":
      return new DirectAttempt(request).abandon;
    case "refused":
      return failSoon(request.result, route.failure);
    default:
      return new ProxyAttempt(request, route).abandon;
  }
}

/** Fails asynchronously like every other outcome, so that the caller has the returned function first. */
function failSoon(result: DialResult, failure: Failure): () => void {
  const soon = setImmediate(() => result.failed(failure));
  return () => clearImmediate(soon);
}
