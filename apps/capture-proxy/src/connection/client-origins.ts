// Tested by ../../test/engine-flow.test.ts
import type { MutableGauges } from "#exchange/gauges.ts";
import { isSamePlace } from "#upstream/dial.ts";
import type { Destination, Dialled } from "#upstream/dial.ts";
import { OriginConnection } from "#upstream/origin-connection.ts";

/** Connections to origins that one client connection keeps; only plain proxy requests ever need more than one. */
const MAX_ORIGINS = 8;

/** The connections to origins that serve one client connection; nothing of them is shared while it lasts. */
export class ClientOrigins {
  readonly #gauges: MutableGauges;
  readonly #connections: OriginConnection[] = [];

  constructor(gauges: MutableGauges) {
    this.#gauges = gauges;
  }

  /** A connection to the same place that has nothing to do. */
  idle(destination: Destination): OriginConnection | undefined {
    return this.#connections.find(({ isIdle, destination: known }) => isIdle && isSamePlace(known, destination));
  }

  /** A connection that was opened for this client. */
  adopt(destination: Destination, dialled: Dialled): OriginConnection {
    const origin = new OriginConnection(destination, dialled);
    this.#own(origin);
    return origin;
  }

  /** The client is gone; its origins' bytes must not reach anybody else. */
  end(): void {
    // Each leaves the list when it is gone, so the list is walked as it was.
    for (const origin of this.#connections.slice()) origin.destroy();
  }

  #own(origin: OriginConnection): void {
    origin.onGone = () => this.#disown(origin);
    if (this.#connections.length >= MAX_ORIGINS) this.#connections.find(({ isIdle }) => isIdle)?.destroy();
    this.#connections.push(origin);
    this.#gauges.upstreamConnections += 1;
  }

  #disown(origin: OriginConnection): void {
    const at = this.#connections.indexOf(origin);
    if (at === -1) return;
    this.#connections.splice(at, 1);
    this.#gauges.upstreamConnections -= 1;
  }
}
