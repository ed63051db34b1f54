import { isLoopback } from "@headworks/host-patterns";
import { NOT_IN_SET } from "@headworks/sockets";
import type { DeadlineSweep, Timed } from "@headworks/sockets";
import type { MutableGauges } from "#exchange/gauges.ts";
import { agentOf, isTraceless } from "./connection-history.ts";
import type { ConnectionHistory, SharedRequest } from "./connection-history.ts";
import { isSamePlace } from "./destination.ts";
import type { Destination } from "./destination.ts";

/** In total; the longest idle connection is evicted first. */
const MAX_IDLE = 64;

/** All loopback addresses are one machine. */
const THIS_MACHINE = "loopback";

/** Not the address of any machine. */
const THIS_PROGRAM = "weir";

/** The client's machine. @param clientAddress  `address:port`, IPv6 in brackets; undefined: Weir itself */
export function machineOf(clientAddress: string | undefined): string {
  if (clientAddress === undefined) return THIS_PROGRAM;
  const host = clientAddress.slice(0, clientAddress.lastIndexOf(":")).replace(/^\[|\]$/g, "");
  return isLoopback(host) ? THIS_MACHINE : host;
}

/** A connection that can be idle. */
export interface Resting {
  readonly destination: Destination;
  /** Undefined: never reused by another client. */
  readonly history: ConnectionHistory | undefined;
  /** No exchange is in progress, and another one is possible. */
  readonly mayRest: boolean;
  /** Becomes idle; `onGone` is called when the connection becomes unusable. */
  rest(onGone: () => void): void;
  destroy(): void;
}

interface IdleParts {
  readonly deadlines: DeadlineSweep;
  readonly gauges: MutableGauges;
  /** Idle timeout in ms; 0 disables reuse. */
  readonly keepMs: () => number;
}

/** An idle connection and the machine it is reserved for. */
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
 * Idle connections to origins whose client disconnected. A client that reconnects soon from the same machine, with the
 * same program, for the same destination inherits one and saves the handshakes with the origin; only if the difference
 * from a kept connection is not observable (decision 027).
 */
export class IdleOrigins<Origin extends Resting> {
  readonly #parts: IdleParts;
  /** Taken from the end: the most recent one is least likely to be closed by its origin. */
  readonly #idle: IdleOrigin<Origin>[] = [];
  #age = 0;
  #isClosed = false;

  constructor(parts: IdleParts) {
    this.#parts = parts;
  }

  /** Generation of the settings; connections of an earlier one are not reused. */
  get age(): number {
    return this.#age;
  }

  /**
   * The connection's client disconnected: keeps or destroys the connection.
   * @param machine  the client's machine
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
   * Removes and returns a connection that this client's request may use.
   * @param isWanted  whether the caller can use it
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

  /** Settings changed: drops all connections made with the old ones. */
  forget(): void {
    this.#age += 1;
    while (this.#idle.length > 0) this.#end(this.#idle[0]);
  }

  /** Drops all connections and keeps no more. */
  close(): void {
    this.#isClosed = true;
    this.forget();
  }

  /** The connection reports its end later and must not count until then. */
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
