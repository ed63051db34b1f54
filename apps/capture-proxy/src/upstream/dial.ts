import { newMoments } from "#exchange/exchange.ts";
import type { Moments } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { AttemptRequest } from "./attempt.ts";
import { LOOP, LoopDetector } from "./loop-detector.ts";
import { ONLY_HTTP1 } from "./destination.ts";
import type { ApplicationProtocol, Destination, DialResult } from "./destination.ts";
import { DirectAttempt } from "./direct-attempt.ts";
import type { OwnListeners } from "./own-listeners.ts";
import { ProxyAttempt } from "./proxy-attempt.ts";
import type { ProxyRoutes, Route } from "./proxy-route.ts";
import type { UpstreamTrust } from "./trust.ts";

export { ALL_PROTOCOLS, isSamePlace, ONLY_HTTP1 } from "./destination.ts";
export type { ApplicationProtocol, Destination, Dialled, DialResult } from "./destination.ts";

/** What connections are made with. */
export interface DialerParts {
  readonly trust: UpstreamTrust;
  readonly own: OwnListeners;
  /** Which destinations are reached by way of an upstream proxy. */
  readonly routes: ProxyRoutes;
  /** The name of this process in Via fields towards upstream proxies. */
  readonly viaPseudonym: string;
  /** For everything up to the first request, the upstream proxy's part included. */
  readonly timeoutMs: () => number;
}

/**
 * Opens connections to origins, directly or by way of the upstream proxy: resolves, connects, proves the certificate,
 * refuses to call ourselves.
 */
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

  /** By this name in its Via fields, a request is known that was here before. */
  get viaPseudonym(): string {
    return this.#parts.viaPseudonym;
  }

  /** Time for everything up to the first request, in milliseconds. */
  get timeoutMs(): number {
    return this.#parts.timeoutMs();
  }

  /** One that goes other ways, and is the same in all else. */
  withRoutes(routes: ProxyRoutes): Dialer {
    return new Dialer({ ...this.#parts, routes });
  }

  /**
   * Starts to connect; fills the moments of `moments` as the steps happen. Gives the function that gives up, after
   * which `result` hears nothing more.
   * @param offered  protocols that a secure origin may choose of, best first
   */
  dial(
    destination: Destination,
    moments: Moments,
    result: DialResult,
    offered: readonly ApplicationProtocol[] = ONLY_HTTP1,
  ): () => void {
    const loops = this.#loops;
    if (loops.hasComeRound(destination.host)) return failSoon(result, LOOP);
    const route = this.#parts.routes.route(destination, this.#parts.viaPseudonym);
    if (route.kind !== "tunnel" || route.proxy.protocol !== "socks5") {
      return start(this.#request(destination, moments, result, offered), route);
    }
    if (loops.isCircular) return failSoon(result, LOOP);
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

/** Gives the function that gives up. */
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

/** Later, as every other outcome, so that the caller has what it was given before. */
function failSoon(result: DialResult, failure: Failure): () => void {
  const soon = setImmediate(() => result.failed(failure));
  return () => clearImmediate(soon);
}
