import { isLoopback } from "@headworks/host-patterns";
import { NOT_IN_SET } from "@headworks/sockets";
import type { DeadlineSweep, Timed } from "@headworks/sockets";
import type { MutableGauges } from "#exchange/gauges.ts";
import { agentOf, isTraceless } from "./connection-history.ts";
import type { ConnectionHistory, SharedRequest } from "./connection-history.ts";
import { isSamePlace } from "./destination.ts";
import type { Destination } from "./destination.ts";

/** All of them together; the one that waits longest goes first. */
const MAX_IDLE = 64;

/** Every loopback address is this machine, so that one client may come from any of them. */
const THIS_MACHINE = "loopback";

/** What no address of a machine is. */
const THIS_PROGRAM = "weir";

/** The machine that a client is on. @param clientAddress  `address:port`, IPv6 in brackets; undefined: Weir itself asks */
export function machineOf(clientAddress: string | undefined): string {
  if (clientAddress === undefined) return THIS_PROGRAM;
  const host = clientAddress.slice(0, clientAddress.lastIndexOf(":")).replace(/^\[|\]$/g, "");
  return isLoopback(host) ? THIS_MACHINE : host;
}

/** A connection that can wait. */
export interface Resting {
  readonly destination: Destination;
  /** Undefined: it is never another client's. */
  readonly history: ConnectionHistory | undefined;
  /** Nothing is under way, and nothing speaks against another exchange. */
  readonly mayRest: boolean;
  /** It waits; `onGone` is to hear when it cannot be used any more. */
  rest(onGone: () => void): void;
  destroy(): void;
}

interface IdleParts {
  readonly deadlines: DeadlineSweep;
  readonly gauges: MutableGauges;
  /** How long one may wait; 0 for not at all. */
  readonly keepMs: () => number;
}

/** A connection that waits, and for whom. */
class IdleOrigin<Origin extends Resting> implements Timed {
  setIndex = NOT_IN_SET;
  deadlineMs: number;
  readonly origin: Origin;
  readonly machine: string;
  readonly agent: string;

  constructor(origin: Origin, machine: string, agent: string, keepMs: number) {
    this.origin = origin;
    this.machine = machine;
    this.agent = agent;
    this.deadlineMs = performance.now() + keepMs;
  }

  onDeadline(): void {
    this.origin.destroy();
  }
}

/**
 * Connections to origins whose client closed its own. A client that comes again soon from the same machine, with the same
 * program, for the same place, goes on with one of them, which saves it the connection and TLS towards the origin. Only
 * where nobody could tell the difference from a client that kept its connection: see decision 027.
 */
export class IdleOrigins<Origin extends Resting> {
  readonly #parts: IdleParts;
  /** The one that came last is taken first: it is the least likely to be closed by its origin. */
  readonly #idle: IdleOrigin<Origin>[] = [];
  #age = 0;
  #isClosed = false;

  constructor(parts: IdleParts) {
    this.#parts = parts;
  }

  /** Connections that were begun in another age were made by other settings. */
  get age(): number {
    return this.#age;
  }

  /**
   * The client of a connection is gone. Keeps it, or destroys it.
   * @param machine  the client's
   */
  keep(origin: Origin, machine: string): void {
    const { history } = origin;
    const agent = history?.age === this.#age ? history.agent : undefined;
    const keepMs = Math.min(this.#parts.keepMs(), history?.originKeepsMs ?? 0);
    if (this.#isClosed || !origin.mayRest || agent === undefined || keepMs <= 0) return origin.destroy();
    if (this.#idle.length === MAX_IDLE) this.#end(this.#idle[0]);
    const idle = new IdleOrigin(origin, machine, agent, keepMs);
    const onGone = (): void => this.#remove(idle);
    origin.rest(onGone);
    this.#idle.push(idle);
    this.#parts.deadlines.add(idle);
    this.#parts.gauges.upstreamConnections += 1;
  }

  /**
   * A connection on which a request of this client may go on, which is the caller's from now on.
   * @param isKept  whether it is of a kind that the caller can use
   */
  take(
    destination: Destination,
    machine: string,
    request: SharedRequest,
    isWanted: (origin: Origin) => boolean,
  ): Origin | undefined {
    if (this.#idle.length === 0 || !isTraceless(request)) return undefined;
    const agent = agentOf(request.fields);
    const idle = this.#idle.findLast(
      (known) =>
        known.machine === machine &&
        known.agent === agent &&
        isSamePlace(known.origin.destination, destination) &&
        known.origin.mayRest &&
        isWanted(known.origin),
    );
    if (idle === undefined) return undefined;
    this.#remove(idle);
    return idle.origin;
  }

  /** Settings changed: what was made by others must not be used any more. */
  forget(): void {
    this.#age += 1;
    while (this.#idle.length > 0) this.#end(this.#idle[0]);
  }

  /** Keeps nothing from now on. */
  close(): void {
    this.#isClosed = true;
    this.forget();
  }

  /** It says later that it is gone, and must not count until then. */
  #end(idle: IdleOrigin<Origin> | undefined): void {
    if (idle === undefined) return;
    this.#remove(idle);
    idle.origin.destroy();
  }

  #remove(idle: IdleOrigin<Origin>): void {
    const at = this.#idle.indexOf(idle);
    if (at === -1) return;
    this.#idle.splice(at, 1);
    this.#parts.deadlines.delete(idle);
    this.#parts.gauges.upstreamConnections -= 1;
  }
}
