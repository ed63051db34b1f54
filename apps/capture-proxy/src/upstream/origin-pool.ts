// Tested by ../../test/origin-pool.test.ts
import { hasBody } from "@headworks/http1";
import type { Framing } from "@headworks/http1";
import type { DeadlineSweep, Timed } from "@headworks/sockets";
import type { MutableGauges } from "#exchange/gauges.ts";
import { isSamePlace } from "./dial.ts";
import type { Destination } from "./dial.ts";
import type { OriginConnection } from "./origin-connection.ts";

/** Shorter than the five seconds after which many servers close an idle connection themselves. */
const IDLE_MS = 4000;
const MAX_CONNECTIONS = 256;

/**
 * Connections to origins whose client connection ended, kept for a moment for the next connection of the same client:
 * programs that open a connection for each request then cost one handshake instead of two. It stays invisible: no
 * connection crosses clients or a change of trust, none that saw authentication of the connection itself (NTLM,
 * Negotiate) is kept, and only requests that can be repeated without harm are sent on one.
 */
export class OriginPool {
  readonly #deadlines: DeadlineSweep;
  readonly #gauges: MutableGauges;
  readonly #kept = new Map<string, Kept[]>();
  #count = 0;

  constructor(deadlines: DeadlineSweep, gauges: MutableGauges) {
    this.#deadlines = deadlines;
    this.#gauges = gauges;
  }

  /** Keeps an idle connection of `client` (an address without port), or ends it. */
  keep(client: string, connection: OriginConnection): void {
    if (!connection.isIdle || connection.isAuthenticated || this.#count >= MAX_CONNECTIONS) {
      connection.destroy();
      return;
    }
    const kept: Kept = {
      connection,
      deadlineMs: performance.now() + IDLE_MS,
      onDeadline: () => connection.destroy(),
    };
    const of = this.#kept.get(client);
    if (of === undefined) this.#kept.set(client, [kept]);
    else of.push(kept);
    this.#count += 1;
    this.#gauges.upstreamConnections += 1;
    this.#deadlines.add(kept);
    connection.release();
    connection.onGone = () => this.#remove(client, kept);
  }

  /** A connection to the same place, now the caller's. */
  take(client: string, destination: Destination): OriginConnection | undefined {
    const found = this.#kept
      .get(client)
      ?.findLast(({ connection }) => connection.isIdle && isSamePlace(connection.destination, destination));
    if (found === undefined) return undefined;
    this.#remove(client, found);
    return found.connection;
  }

  /** Ends all of them. */
  clear(): void {
    for (const of of this.#kept.values()) for (const { connection } of of.slice()) connection.destroy();
  }

  #remove(client: string, kept: Kept): void {
    const of = this.#kept.get(client);
    const at = of?.indexOf(kept) ?? -1;
    if (of === undefined || at === -1) return;
    of.splice(at, 1);
    if (of.length === 0) this.#kept.delete(client);
    this.#count -= 1;
    this.#gauges.upstreamConnections -= 1;
    this.#deadlines.delete(kept);
  }
}

interface Kept extends Timed {
  readonly connection: OriginConnection;
}

/** Methods whose requests change nothing at the origin (RFC 9110 section 9.2.1). */
const HARMLESS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Whether a request may be sent on a kept connection, since it may be sent twice. */
export function isHarmless(method: string, framing: Framing): boolean {
  return HARMLESS.has(method) && !hasBody(framing);
}

/** Whether a value of Authorization may speak for the whole connection: anything but the schemes that cannot. */
export function bindsConnection(authorization: string | undefined): boolean {
  return authorization !== undefined && !/^(?:basic|bearer|digest) /i.test(authorization);
}
