// Tested by ../../test/origin-pool.test.ts
import type { MutableGauges } from "#exchange/gauges.ts";
import { isSamePlace } from "#upstream/dial.ts";
import type { Destination, Dialled } from "#upstream/dial.ts";
import { OriginConnection } from "#upstream/origin-connection.ts";
import type { OriginPool } from "#upstream/origin-pool.ts";

/** Connections to origins that one client connection keeps; only plain proxy requests ever need more than one. */
const MAX_ORIGINS = 8;

/** The connections to origins that serve one client connection; nothing of them is shared while it lasts. */
export class ClientOrigins {
  readonly #pool: OriginPool;
  readonly #gauges: MutableGauges;
  /** The client's address without its port. */
  readonly #client: string;
  readonly #connections: OriginConnection[] = [];

  /** `clientAddress` is an address with a port. */
  constructor(pool: OriginPool, gauges: MutableGauges, clientAddress: string) {
    this.#pool = pool;
    this.#gauges = gauges;
    this.#client = clientAddress.slice(0, clientAddress.lastIndexOf(":"));
  }

  /**
   * A connection to the same place that has nothing to do.
   * @param isRepeatable  the request could be sent twice without harm, so one that an earlier connection left will do
   */
  idle(destination: Destination, isRepeatable: boolean): OriginConnection | undefined {
    const own = this.#connections.find(({ isIdle, destination: known }) => isIdle && isSamePlace(known, destination));
    if (own !== undefined || !isRepeatable) return own;
    const left = this.#pool.take(this.#client, destination);
    if (left !== undefined) this.#own(left);
    return left;
  }

  /** A connection that was opened for this client. */
  adopt(destination: Destination, dialled: Dialled): OriginConnection {
    const origin = new OriginConnection(destination, dialled);
    this.#own(origin);
    return origin;
  }

  /** What is idle may serve this client's next connection, what is not must not serve anybody. */
  leave(): void {
    for (const origin of this.#connections.slice()) {
      this.#disown(origin);
      this.#pool.keep(this.#client, origin);
    }
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
