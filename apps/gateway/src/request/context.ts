import type { Route } from "@headworks/gateway-contract";
import { type Framing, hasField, type RawFields } from "@headworks/http1";
import type { ListenerFacts, Peer } from "./client-stream.ts";
import type { CompiledRoute, Generation } from "./generation.ts";
import type { BodyCheck, RequestTrace } from "./phases.ts";

/** The consumer that a request was authenticated as, compiled from the document. */
export interface ConsumerIdentity {
  readonly name: string;
  readonly groups: readonly string[];
  readonly priority: number | undefined;
  readonly credential: "api_key" | "basic" | "jwt" | "mtls" | "hmac";
  /** Claims of the token; only with `jwt`. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** Upstream side of a request, for logs and metrics. */
export interface UpstreamFacts {
  upstream: string;
  endpoint: string;
  attempts: number;
  /** Reason of the last failed attempt: a failure class and details. */
  failure: string | undefined;
}

/** State of one request while it is handled; passed to everything downstream. */
export class RequestContext {
  /** The generation that was current when the head was read; it does not change for this request. */
  readonly generation: Generation;
  readonly listener: ListenerFacts;
  readonly peer: Peer;
  readonly startedMs: number;
  readonly version: "1.0" | "1.1" | "2";
  readonly method: string;
  /** Target in origin form with a canonical path, and the query. */
  readonly target: string;
  /** `target` before `?`; checked: no dot segments, no backslash, no control bytes. */
  readonly path: string;
  /** `target` as the client sent, and perhaps signed, it. */
  readonly sentTarget: string;
  /** The raw query after `?`; undefined without `?`. */
  readonly query: string | undefined;
  /** Requested host and port. */
  readonly authority: string | undefined;
  readonly fields: Readonly<RawFields>;
  readonly framing: Framing;
  /** Lower-case name of an offered upgrade protocol, if an upgrade is allowed. */
  readonly upgrade: string | undefined;
  requestId = "";
  /** The correlation id that the client sent, else the request id. */
  correlationId = "";
  route: CompiledRoute | undefined;
  /** The route whose path matched while another of its criteria did not; `route` is undefined then. */
  missedRoute: CompiledRoute | undefined;
  /** Parameters of a path template, or named groups of a pattern. */
  pathParameters: Readonly<Record<string, string>> | undefined;
  consumer: ConsumerIdentity | undefined;
  /** Lower-case names of credential fields that must not reach the upstream. */
  credentialFields: ReadonlySet<string> | undefined;
  /** Name-value pairs that slices add to every response, such as limits. */
  responseFields: RawFields | undefined;
  upstream: UpstreamFacts | undefined;
  /** Sent to the upstream in place of the client's conditions, to revalidate a stored response. */
  validation: Readonly<RawFields> | undefined;
  /** The request whose stale response this one replaces; this one has no client. */
  refreshes: RequestContext | undefined;
  /** Limit of the request body in bytes; a longer one ends the exchange, with 413 if no response was started. */
  bodyLimitBytes = Number.POSITIVE_INFINITY;
  /** Check that the body must pass before the upstream gets its end; only set for requests with a body. */
  bodyCheck: BodyCheck | undefined;
  /** Set if the request is traced. */
  trace: RequestTrace | undefined;
  /** Removes the request from the admission queue; set while it is queued. */
  leaveAdmission: (() => void) | undefined;
  /** Flags of the access log. */
  wasRateLimited = false;
  wasShed = false;
  isBroken = false;
  #clientAddress: string | undefined;

  constructor(parts: {
    readonly generation: Generation;
    readonly listener: ListenerFacts;
    readonly peer: Peer;
    readonly startedMs: number;
    readonly version: "1.0" | "1.1" | "2";
    readonly method: string;
    readonly target: string;
    /** Default: `target`. */
    readonly sentTarget?: string;
    readonly authority: string | undefined;
    readonly fields: Readonly<RawFields>;
    readonly framing: Framing;
    readonly upgrade?: string | undefined;
  }) {
    this.generation = parts.generation;
    this.listener = parts.listener;
    this.peer = parts.peer;
    this.startedMs = parts.startedMs;
    this.version = parts.version;
    this.method = parts.method;
    this.target = parts.target;
    this.sentTarget = parts.sentTarget ?? parts.target;
    const mark = parts.target.indexOf("?");
    this.path = mark === -1 ? parts.target : parts.target.slice(0, mark);
    this.query = mark === -1 ? undefined : parts.target.slice(mark + 1);
    this.authority = parts.authority;
    this.fields = parts.fields;
    this.framing = parts.framing;
    this.upgrade = parts.upgrade;
  }

  /** The client's address: the peer's, or behind trusted proxies the last address that is no trusted proxy. */
  get clientAddress(): string {
    return (this.#clientAddress ??= this.generation.trustedProxies.clientAddress(this.peer.address, this.fields));
  }

  addResponseField(name: string, value: string): void {
    (this.responseFields ??= []).push(name, value);
  }
}

/** The parts of a `RequestContext` that matter here. */
interface PossiblePreflight {
  readonly method: string;
  readonly fields: Readonly<RawFields>;
  readonly route: { readonly document: Pick<Route, "cors"> } | undefined;
}

/**
 * Whether a request is a CORS preflight (OPTIONS with Origin and Access-Control-Request-Method) to a route that
 * responds to preflights itself. Exemptions must not depend on the fields alone: any client can send them, and on
 * other routes the request would reach the upstream.
 */
export function isPreflight(request: PossiblePreflight): boolean {
  return request.method === "OPTIONS" && request.route?.document.cors !== undefined && asksAhead(request);
}

/** Whether a request has the form of a preflight, whatever its route. */
export function asksAhead({ method, fields }: Pick<PossiblePreflight, "method" | "fields">): boolean {
  return method === "OPTIONS" && hasField(fields, "origin") && hasField(fields, "access-control-request-method");
}
