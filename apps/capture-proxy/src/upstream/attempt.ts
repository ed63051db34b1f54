import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Moments } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { ApplicationProtocol, Destination, Dialled, DialResult } from "./destination.ts";
import type { OwnListeners } from "./own-listeners.ts";
import type { UpstreamTrust } from "./trust.ts";

export interface AttemptRequest {
  readonly destination: Destination;
  /** Filled in as the steps happen. */
  readonly moments: Moments;
  readonly result: DialResult;
  /** ALPN protocols for a secure origin, in order of preference. */
  readonly offered: readonly ApplicationProtocol[];
  readonly trust: UpstreamTrust;
  readonly own: OwnListeners;
  readonly timeoutMs: number;
}

/** One connection attempt: it succeeds, fails or is abandoned, exactly once and before its timeout. */
export abstract class Attempt {
  readonly abandon = (): void => {
    if (this.#settle()) this.discard();
  };
  protected readonly request: AttemptRequest;
  readonly #timer: NodeJS.Timeout;
  #settled = false;

  constructor(request: AttemptRequest) {
    this.request = request;
    this.#timer = setTimeout(() => this.fail(this.late(request.timeoutMs)), request.timeoutMs);
  }

  /** The failure for a timeout. */
  protected abstract late(timeoutMs: number): Failure;
  /** Removes the attempt's listeners from its sockets. */
  protected abstract detach(): void;
  /** Destroys its sockets. */
  protected abstract discard(): void;

  protected succeed(dialled: () => Dialled): void {
    if (this.#settle()) this.request.result.connected(dialled());
  }

  protected fail(failure: Failure): void {
    if (!this.#settle()) return;
    this.discard();
    this.request.result.failed(failure);
  }

  /** False if the attempt was already settled. */
  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    clearTimeout(this.#timer);
    this.detach();
    return true;
  }
}

/** Destroys a socket and ignores its last error. */
export function destroyQuietly(socket: Socket | TLSSocket): void {
  socket.on("error", ignoreError);
  socket.destroy();
}

export function ignoreError(): void {}
