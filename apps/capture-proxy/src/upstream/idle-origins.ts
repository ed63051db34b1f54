import { isLoopback } from "@headworks/host-patterns";
import { fieldValue, fieldValues, ownText, type RawFields } from "@headworks/http1";
import { type DeadlineSweep, NOT_IN_SET, type Timed } from "@headworks/sockets";
import type { MutableGauges } from "#exchange/gauges.ts";
import { type Destination, isSameDestination } from "./destination.ts";

/** The properties of a request that decide whether its connection may be reused by another client. */
export interface SharedRequest {
  readonly method: string;
  readonly fields: Readonly<RawFields>;
  readonly hasBody: boolean;
  /** Lower-cased token of a valid upgrade offer. */
  readonly upgrade: string | undefined;
}

/** The properties of a response that decide whether its connection may be reused by another client. */
export interface SharedResponse {
  readonly version: "1.0" | "1.1" | "2";
  readonly status: number;
  readonly fields: Readonly<RawFields>;
}

/** Beyond this many requests a connection stays with its client; reuse would save little. */
const MAX_REQUESTS = 64;
/** Safety margin before the origin's announced keep-alive timeout. */
const MARGIN_MS = 1000;
/** Longer User-Agent values make a connection private. */
const MAX_AGENT_LENGTH = 1024;

/** Credentials that authenticate each request. Others (NTLM, Negotiate) may authenticate the connection. */
const STATELESS_CREDENTIALS = /^(?:basic|bearer|digest) /i;
const KEEP_ALIVE_SECONDS = /(?:^|[,;\s])timeout=(\d{1,9})(?:$|[,;\s])/i;

/** Whether a request leaves no state in its connection: no second request, no credentials. */
function isTraceless({ method, fields, hasBody, upgrade }: SharedRequest): boolean {
  if ((method !== "GET" && method !== "HEAD") || hasBody || upgrade !== undefined) return false;
  return fieldValues(fields, "authorization").every((credentials) => STATELESS_CREDENTIALS.test(credentials));
}

/** User-Agent of a request; empty if absent, undefined if too long or ambiguous. */
function agentOf(fields: Readonly<RawFields>): string | undefined {
  const agent = fieldValue(fields, "user-agent") ?? "";
  return agent.length > MAX_AGENT_LENGTH ? undefined : agent;
}

/**
 * The history of an origin connection, which decides whether another connection of the same client may inherit it:
 * only if neither the origin nor the client could tell the difference from a client that kept its connection (decision
 * 027).
 */
export class ConnectionHistory {
  /** `IdleOrigins.age` when the connection was opened. */
  readonly age: number;
  #isShareable = true;
  #requestCount = 0;
  #agent: string | undefined;
  #originKeepsMs = Number.POSITIVE_INFINITY;

  constructor(age: number) {
    this.age = age;
  }

  /** The common User-Agent of all requests; undefined if no other client may use the connection. */
  get agent(): string | undefined {
    return this.#isShareable ? this.#agent : undefined;
  }

  /** Keep-alive timeout announced by the origin in ms; infinite if unknown. */
  get originKeepsMs(): number {
    return this.#originKeepsMs;
  }

  requestSent(request: SharedRequest): void {
    if (!this.#isShareable) return;
    this.#requestCount += 1;
    this.#isShareable = this.#requestCount <= MAX_REQUESTS && isTraceless(request) && this.#isOfOneAgent(request);
  }

  responseStarted({ version, status, fields }: SharedResponse): void {
    if (!this.#isShareable) return;
    // Other error statuses may concern the connection: missing credentials, a wrong name, a reached limit.
    const isOrdinary = status < 400 || status === 404 || status === 410;
    this.#isShareable = version !== "1.0" && isOrdinary && status !== 101;
    const seconds = KEEP_ALIVE_SECONDS.exec(fieldValue(fields, "keep-alive") ?? "")?.[1];
    if (seconds !== undefined) this.#originKeepsMs = Number(seconds) * 1000 - MARGIN_MS;
  }

  /** An exchange on the connection failed. */
  spoil(): void {
    this.#isShareable = false;
  }

  #isOfOneAgent({ fields }: SharedRequest): boolean {
    const agent = agentOf(fields);
    if (agent === undefined) return false;
    this.#agent ??= ownText(agent);
    return this.#agent === agent;
  }
}

/** In total; the least recently used connection is evicted first. */
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

  /** The client disconnected: keeps or destroys the connection. `machine` is the client's. */
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

  /** Removes and returns a connection that this client's request may use and `isWanted` accepts. */
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
        isSameDestination(known.origin.destination, destination) &&
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
