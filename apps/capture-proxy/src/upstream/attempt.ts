import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Moments } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { ApplicationProtocol, Destination, Dialled, DialResult } from "./destination.ts";
import type { OwnListeners } from "./own-listeners.ts";
import type { UpstreamTrust } from "./trust.ts";

/** What an attempt is asked for, and may use. */
export interface AttemptRequest {
  readonly destination: Destination;
  /** Filled as the steps happen. */
  readonly moments: Moments;
  readonly result: DialResult;
  /** Protocols that a secure origin may choose of, best first. */
  readonly offered: readonly ApplicationProtocol[];
  readonly trust: UpstreamTrust;
  readonly own: OwnListeners;
  readonly timeoutMs: number;
}

/** One try to connect: it succeeds, fails or is abandoned, exactly once and in time. */
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

  /** What to say when it took too long. */
  protected abstract late(timeoutMs: number): Failure;
  /** Takes all listeners of the attempt off its sockets. */
  protected abstract detach(): void;
  /** Ends its sockets. */
  protected abstract discard(): void;

  protected succeed(dialled: () => Dialled): void {
    if (this.#settle()) this.request.result.connected(dialled());
  }

  protected fail(failure: Failure): void {
    if (!this.#settle()) return;
    this.discard();
    this.request.result.failed(failure);
  }

  /** False when it had happened already. */
  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    clearTimeout(this.#timer);
    this.detach();
    return true;
  }
}

/** A destroyed socket may still report its last error; nobody is interested any more. */
export function destroyQuietly(socket: Socket | TLSSocket): void {
  socket.on("error", ignoreError);
  socket.destroy();
}

export function ignoreError(): void {}
