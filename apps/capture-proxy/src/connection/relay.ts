// Tested by ../../test/engine-flow.test.ts
import type { BodyCapture } from "#exchange/body.ts";
import type { Failure } from "#exchange/failure.ts";
import type { Flow, Line, Pace } from "#exchange/line.ts";
import { cutConnection, noteRead } from "@headworks/sockets";
import type { ByteSocket, Timed } from "@headworks/sockets";
import type { ProxyServices } from "./proxy-services.ts";

interface RelayOptions {
  readonly client: ByteSocket;
  readonly upstream: ByteSocket;
  /** Bytes read from each side before the relay began. */
  readonly fromClient: Buffer | undefined;
  readonly fromUpstream: Buffer | undefined;
  /** Counts what flows, and says over which line. */
  readonly counts: {
    readonly requestBody: BodyCapture;
    readonly responseBody: BodyCapture;
    readonly pace: Pace | undefined;
  };
  readonly services: ProxyServices;
  /** Exactly once, when both directions are done or one side broke. */
  readonly onEnd: (failure: Failure | undefined) => void;
}

/**
 * Carries bytes both ways, untouched, each side slowed down to what the other and the line take; half-closes are carried
 * over.
 */
export function relay(options: RelayOptions): { readonly abort: (failure: Failure) => void } {
  const tunnel = new Relay(options);
  return { abort: (failure) => tunnel.end(failure) };
}

class Relay implements Timed {
  deadlineMs = Number.POSITIVE_INFINITY;
  readonly #options: RelayOptions;
  #openDirections = 2;
  #isOver = false;
  readonly #flows: Flow[] = [];

  constructor(options: RelayOptions) {
    this.#options = options;
    const { client, upstream, fromClient, fromUpstream, counts, services } = options;
    services.gauges.activeTunnels += 1;
    services.gauges.tunnelsTotal += 1;
    services.deadlines.add(this);
    this.#touch();
    this.#carry(client, upstream, { count: counts.requestBody, line: counts.pace?.up, first: fromClient });
    this.#carry(upstream, client, { count: counts.responseBody, line: counts.pace?.down, first: fromUpstream });
    client.on("error", (error: NodeJS.ErrnoException) => this.end(brokenBy("client", error)));
    upstream.on("error", (error: NodeJS.ErrnoException) => this.end(brokenBy("upstream", error)));
    client.resume();
    upstream.resume();
  }

  onDeadline(): void {
    const message = `No byte moved for ${this.#options.services.policy().idleTimeoutMs} ms`;
    this.end({ stage: "receive", side: "upstream", code: "UPSTREAM_TIMEOUT", message });
  }

  end(failure: Failure | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { client, upstream, services, counts, onEnd } = this.#options;
    services.deadlines.delete(this);
    services.gauges.activeTunnels -= 1;
    for (const flow of this.#flows) flow.close();
    finishOrDestroy(client, failure);
    finishOrDestroy(upstream, failure);
    counts.requestBody.end();
    counts.responseBody.end();
    onEnd(failure);
  }

  #carry(
    from: ByteSocket,
    to: ByteSocket,
    { count, line, first }: { count: BodyCapture; line: Line | undefined; first: Buffer | undefined },
  ): void {
    const waiting: (() => void)[] = [];
    const flow = line?.open({
      take: (piece) => to.write(piece),
      moved: () => {
        this.#touch();
        if (flow?.isLow === true) from.resume();
        if (flow?.isEmpty === true) for (const next of waiting.splice(0)) next();
      },
    });
    if (flow !== undefined) this.#flows.push(flow);
    const whenEmpty = (next: () => void): void => {
      if (flow === undefined || flow.isEmpty) next();
      else waiting.push(next);
    };
    const pass = (piece: Buffer): void => {
      this.#touch();
      noteRead(piece.length);
      count.add(piece);
      if (line !== undefined && flow !== undefined && (line.isLimited || !flow.isEmpty)) {
        flow.add(piece);
        if (!flow.isLow) from.pause();
        return;
      }
      line?.charge(piece.length);
      if (!to.write(piece)) from.pause();
    };
    if (first) pass(first);
    from.on("data", pass);
    to.on("drain", () => {
      flow?.resume();
      if (flow === undefined || flow.isLow) from.resume();
    });
    from.on("end", () =>
      whenEmpty(() => {
        to.end();
        this.#openDirections -= 1;
        if (this.#openDirections === 0) this.end(undefined);
      }),
    );
    from.on("close", () => whenEmpty(() => this.end(undefined)));
  }

  #touch(): void {
    this.deadlineMs = performance.now() + this.#options.services.policy().idleTimeoutMs;
  }
}

/** Without a failure, what was written may still leave; with one, the other side should learn of it at once. */
function finishOrDestroy(socket: ByteSocket, failure: Failure | undefined): void {
  if (failure) cutConnection(socket);
  else if (!socket.destroyed) socket.destroySoon();
}

function brokenBy(side: "client" | "upstream", error: NodeJS.ErrnoException): Failure {
  const who = side === "client" ? "The client" : "The origin";
  const cause = error;
  if (side === "client") {
    return { stage: "client-write", side, code: "CLIENT_ABORTED", message: `${who} reset the tunnel`, cause };
  }
  return {
    stage: "receive",
    side,
    code: "UPSTREAM_RESET",
    message: `${who} reset the tunnel (${error.code ?? error.message})`,
    cause,
  };
}
