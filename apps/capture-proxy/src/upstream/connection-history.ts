import { fieldValue, fieldValues, ownText } from "@headworks/http1";
import type { RawFields } from "@headworks/http1";

/** What of a request decides whether it may share a connection with others. */
export interface SharedRequest {
  readonly method: string;
  readonly fields: Readonly<RawFields>;
  readonly hasBody: boolean;
  /** Lower-cased, of an upgrade that was offered properly. */
  readonly upgrade: string | undefined;
}

/** What of an answer decides whether its connection may serve others. */
export interface SharedResponse {
  readonly version: "1.0" | "1.1" | "2";
  readonly status: number;
  readonly fields: Readonly<RawFields>;
}

/** A connection that served more belongs to its client: there is little to save, and nothing more to watch. */
const MAX_REQUESTS = 64;
/** The origin closes when its time is over; a request must not be on its way then. */
const MARGIN_MS = 1000;
/** Longer names of programs are not remembered. */
const MAX_AGENT_LENGTH = 1024;

/** Credentials that prove each request for itself. Others (NTLM, Negotiate) may prove the connection. */
const STATELESS_CREDENTIALS = /^(?:basic|bearer|digest) /i;
const KEEP_ALIVE_SECONDS = /(?:^|[,;\s])timeout=(\d{1,9})(?:$|[,;\s])/i;

/**
 * Whether a request leaves nothing behind in its connection: it has no bytes that could be taken for another request,
 * and no credentials that could count for a later one.
 */
export function isTraceless({ method, fields, hasBody, upgrade }: SharedRequest): boolean {
  if ((method !== "GET" && method !== "HEAD") || hasBody || upgrade !== undefined) return false;
  return fieldValues(fields, "authorization").every((credentials) => STATELESS_CREDENTIALS.test(credentials));
}

/** The program that a request says it comes from; empty when it says nothing, undefined when it says too much. */
export function agentOf(fields: Readonly<RawFields>): string | undefined {
  const agent = fieldValue(fields, "user-agent") ?? "";
  return agent.length > MAX_AGENT_LENGTH ? undefined : agent;
}

/**
 * What a connection to an origin carried so far, as far as it decides whether another connection of the same client may go on
 * with it. It may when neither the origin nor the client could tell that from the client having kept its first connection
 * (decision 027).
 */
export class ConnectionHistory {
  /** The settings' age (`IdleOrigins.age`) by which it was made. */
  readonly age: number;
  #isShareable = true;
  #requestCount = 0;
  #agent: string | undefined;
  #originKeepsMs = Number.POSITIVE_INFINITY;

  constructor(age: number) {
    this.age = age;
  }

  /** The program that all requests came from; undefined when nobody else may use the connection. */
  get agent(): string | undefined {
    return this.#isShareable ? this.#agent : undefined;
  }

  /** How long the origin is known to wait for another request; infinite when it did not say. */
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
    // Other failures may be about the connection: credentials it lacks, a name it is not for, a limit it reached.
    const isOrdinary = status < 400 || status === 404 || status === 410;
    this.#isShareable = version !== "1.0" && isOrdinary && status !== 101;
    const seconds = KEEP_ALIVE_SECONDS.exec(fieldValue(fields, "keep-alive") ?? "")?.[1];
    if (seconds !== undefined) this.#originKeepsMs = Number(seconds) * 1000 - MARGIN_MS;
  }

  /** An exchange on it did not end as it should. */
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
