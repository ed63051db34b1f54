import { fieldValue, fieldValues, ownText } from "@headworks/http1";
import type { RawFields } from "@headworks/http1";

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

/**
 * Whether a request leaves no state in its connection: no bytes that could be parsed as another request, and no
 * credentials that could apply to a later one.
 */
export function isTraceless({ method, fields, hasBody, upgrade }: SharedRequest): boolean {
  if ((method !== "GET" && method !== "HEAD") || hasBody || upgrade !== undefined) return false;
  return fieldValues(fields, "authorization").every((credentials) => STATELESS_CREDENTIALS.test(credentials));
}

/** User-Agent of a request; empty if absent, undefined if too long or ambiguous. */
export function agentOf(fields: Readonly<RawFields>): string | undefined {
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
