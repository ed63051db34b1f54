// Tested by ../../test/engine-flow.test.ts
import type { Socket } from "node:net";
import { newMoments } from "#exchange/exchange.ts";
import type { Moments } from "#exchange/exchange.ts";
import type { Target, Verdict } from "#exchange/phases.ts";
import type { Destination, Dialled } from "#upstream/dial.ts";
import type { ProxyServices } from "./proxy-services.ts";

/** A client that says nothing for this long may be waiting for the server to speak first, as with SMTP or SSH. */
const SILENCE_MS = 500;

/** The server spoke first; its bytes are unshifted into the paused socket. */
export type ServerSpoke = (dialled: Dialled, moments: Moments) => void;

/** Where the client of a tunnel wants to go, and the Via fields that it asked with. */
type SilentTarget = Target & Pick<Destination, "via">;

/**
 * Waits for a silent client, then opens the connection to its target and listens: if the server speaks first, the
 * tunnel is not HTTP and not TLS. Once the client speaks, the owner cancels.
 */
export class SilenceBreaker {
  readonly #timer: NodeJS.Timeout;
  #isCancelled = false;
  #cancelDial: (() => void) | undefined;
  #upstream: Socket | undefined;

  constructor(services: ProxyServices, target: SilentTarget, serverSpoke: ServerSpoke) {
    this.#timer = setTimeout(() => {
      const verdict = services.pipeline.target(target);
      if (!(verdict instanceof Promise)) return this.#dial(services, target, verdict, serverSpoke);
      void verdict.then((later) => this.#dial(services, target, later, serverSpoke));
    }, SILENCE_MS);
  }

  /** A target that rules keep connections from is not dialled; whatever the client says first will be answered. */
  #dial(services: ProxyServices, { host, port, via }: SilentTarget, verdict: Verdict, serverSpoke: ServerSpoke): void {
    if (verdict.kind !== "continue" || this.#isCancelled) return;
    const moments = newMoments();
    const destination = { host, port, secure: false, serverName: undefined, tunnel: true, via };
    this.#cancelDial = services.dialer.dial(destination, moments, {
      connected: (dialled) => this.#listen(dialled, moments, serverSpoke),
      // The client's first request will meet the same failure, and can be told.
      failed: () => undefined,
    });
  }

  cancel(): void {
    this.#isCancelled = true;
    clearTimeout(this.#timer);
    this.#cancelDial?.();
    this.#upstream?.destroy();
    this.#upstream = undefined;
  }

  #listen(dialled: Dialled, moments: Moments, serverSpoke: ServerSpoke): void {
    const { socket } = dialled;
    this.#upstream = socket;
    const ignore = (): void => undefined;
    socket.on("error", ignore);
    socket.once("data", (bytes: Buffer) => {
      socket.off("error", ignore);
      socket.pause();
      socket.unshift(bytes);
      this.#upstream = undefined;
      serverSpoke(dialled, moments);
    });
  }
}
