import type { Socket } from "node:net";
import { newMoments } from "#exchange/exchange.ts";
import type { Moments } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { Refusal, Target, Verdict } from "#exchange/phases.ts";
import type { Destination, Dialled } from "#upstream/dial.ts";
import type { ProxyServices } from "./proxy-services.ts";

/** A client that says nothing for this long may be waiting for the server to speak first, as with SMTP or SSH. */
const SILENCE_MS = 500;
/** One that said nothing for this long learns what keeps the server from speaking; others may be far away, or busy. */
const PATIENCE_MS = 2000;

/** What came of the target of a silent client; one of these is called, at most once. */
export interface ServerFirstOutcome {
  /** The server spoke first, or ended its side; its bytes or its end are still unread. */
  serverSpoke(dialled: Dialled, moments: Moments): void;
  /** Rules keep connections from it; it was not dialled. */
  refused(verdict: Refusal): void;
  /** It cannot be reached, or with an address: it was, and broke the connection without a word. */
  failed(failure: Failure, moments: Moments, address: string | undefined): void;
}

/** Where the client of a tunnel wants to go, and the Via fields that it asked with. */
type SilentTarget = Target & Pick<Destination, "via">;

/**
 * Waits for a silent client, then opens the connection to its target and listens: if the server speaks first, the
 * tunnel is not HTTP and not TLS. Once the client speaks, the owner cancels. What keeps the server from speaking is told
 * too: a client that waits for the server would wait for ever. One that is merely slow has its time before that, since
 * an answer can say more than the end of a tunnel.
 */
export class ServerFirstProbe {
  readonly #startedMs = performance.now();
  readonly #outcome: ServerFirstOutcome;
  #timer: NodeJS.Timeout;
  #isCancelled = false;
  #cancelDial: (() => void) | undefined;
  #upstream: Socket | undefined;

  constructor(services: ProxyServices, target: SilentTarget, outcome: ServerFirstOutcome) {
    this.#outcome = outcome;
    this.#timer = setTimeout(() => {
      const verdict = services.pipeline.target(target);
      if (!(verdict instanceof Promise)) return this.#decided(services, target, verdict);
      void verdict.then((later) => this.#decided(services, target, later));
    }, SILENCE_MS);
  }

  #decided(services: ProxyServices, { host, port, via }: SilentTarget, verdict: Verdict): void {
    if (this.#isCancelled) return;
    if (verdict.kind !== "continue") return this.#outcome.refused(verdict);
    const moments = newMoments();
    const destination = { host, port, secure: false, serverName: undefined, tunnel: true, via };
    this.#cancelDial = services.dialer.dial(destination, moments, {
      connected: (dialled) => this.#listen(dialled, moments),
      failed: (failure) => {
        this.#cancelDial = undefined;
        const tell = (): void => this.#outcome.failed(failure, moments, undefined);
        // Who speaks to the proxy itself through the proxy is not to do so for long.
        if (failure.code === "LOOP") tell();
        else this.#tellLater(tell);
      },
    });
  }

  #tellLater(tell: () => void): void {
    this.#timer = setTimeout(tell, this.#startedMs + PATIENCE_MS - performance.now());
  }

  cancel(): void {
    this.#isCancelled = true;
    clearTimeout(this.#timer);
    this.#cancelDial?.();
    this.#upstream?.destroy();
    this.#upstream = undefined;
  }

  #listen(dialled: Dialled, moments: Moments): void {
    const { socket, address } = dialled;
    this.#cancelDial = undefined;
    this.#upstream = socket;
    const onReadable = (): void => {
      socket.off("readable", onReadable);
      this.#upstream = undefined;
      this.#outcome.serverSpoke(dialled, moments);
    };
    socket.on("error", (cause: NodeJS.ErrnoException) => {
      if (this.#upstream === undefined) return;
      const message = `${address} broke the connection before anybody spoke (${cause.code ?? cause.message})`;
      const failure: Failure = { stage: "receive", side: "upstream", code: "UPSTREAM_RESET", message, cause };
      this.#upstream = undefined;
      this.#tellLater(() => this.#outcome.failed(failure, moments, address));
    });
    // Neither bytes nor an end are taken before somebody asks for them.
    socket.on("readable", onReadable);
  }
}
