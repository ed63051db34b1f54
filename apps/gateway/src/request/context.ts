import type { X509Certificate } from "node:crypto";
import type { Duplex, Transform } from "node:stream";
import type { Logger } from "pino";
import type { ConfigDocument, Consumer, ErrorCode, Route } from "@headworks/gateway-contract";
import { type Framing, hasField, type RawFields } from "@headworks/http1";
import type { SharedBytes } from "@headworks/sockets";
import type { UpstreamChoice } from "#upstream/upstream-registry.ts";
import type { RequestIdField, TrustedProxies, Via } from "./forwarding-rules.ts";

export interface ListenerFacts {
  readonly name: string;
  readonly isSecure: boolean;
  readonly port: number;
}

/** The client's end of a connection; behind the PROXY protocol, the end it names. */
export interface Peer {
  readonly address: string;
  readonly port: number;
  /** The client's verified certificate, if one was requested and sent. */
  readonly certificate?: X509Certificate;
  readonly serverName?: string;
}

/** Events on the client's side of a request. Never called from inside a call to {@link ClientStream}. */
export interface ClientHandler {
  readonly onBodyData: (piece: SharedBytes) => void;
  onBodyTrailers(fields: RawFields): void;
  onBodyEnd(): void;
  /** One read is processed: flush the resulting output. */
  onBodyBatch(): void;
  onClientDrain(): void;
  /** The client disconnected, or its body was malformed after the response had started. */
  onClientGone(): void;
  /** The request timed out or its body is malformed, and no response was started: send this refusal, or abort. */
  onRefused(refusal: Refusal): void;
}

/** One request of a client, independent of the protocol: its body in, its response out. */
export interface ClientStream {
  readonly version: "1.0" | "1.1" | "2";
  /** Undefined until a handler takes the request. */
  handler: ClientHandler | undefined;
  /**
   * Starts to deliver the body to `handler`, and sends 100 Continue if the client expects it. If the body is never
   * read, the stream closes after its response, or discards the body.
   */
  readBody(): void;
  /** Bytes of the body that have arrived and are unread. */
  readonly bodyBytesHere: number;
  pauseBody(): void;
  resumeBody(): void;
  sendInformational(status: number, reason: string, fields: RawFields): void;
  /** Starts the response; `fields` must not contain hop-by-hop and framing fields, which the stream adds. */
  sendHead(status: number, reason: string, fields: RawFields, framing: Framing): void;
  readonly sendData: (piece: SharedBytes) => void;
  /** Ends the response. After a body of known length only HTTP/2 can carry trailers. */
  sendEnd(trailers?: RawFields): void;
  /** Writes buffered output. False: stop until `onClientDrain`; a slow client has `bufferBytes`. */
  flush(bufferBytes: number): boolean;
  /** Ends the response early, in a way that the client sees as incomplete. */
  abort(): void;
  /**
   * After a 101 was sent with {@link sendHead}: the tunnel (the connection, or one HTTP/2 stream) and the bytes read
   * beyond the request. Undefined where there is none.
   */
  takeOver(): TunnelEnd | undefined;
  readonly canUpgrade: boolean;
}

/** One end of a tunnel: paused, without listeners; `bytes` were read from it already. */
export interface TunnelEnd {
  readonly socket: Duplex;
  readonly bytes: Buffer | undefined;
  /** Replaces `data` events for a socket that has none; the receiver owns the pieces. */
  readonly receive?: (receiver: (piece: Buffer) => void) => void;
  /** `bytes` are the last ones; the socket may have emitted `end` already. */
  readonly hasEnded?: boolean;
}

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
interface UpstreamFacts {
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

/** The action of a route. */
export type CompiledAction =
  | {
      readonly kind: "proxy";
      /** Chooses the upstream: the service's, or one of its split. */
      readonly choose: (request: RequestContext) => UpstreamChoice;
      /** The upstream's target, path and query; undefined if the result must not be sent (400). */
      readonly rewrite: (request: RequestContext) => string | undefined;
      /** Changes the upstream's request fields; undefined if there is nothing to change. */
      readonly changeFields: ((request: RequestContext, fields: string[]) => void) | undefined;
    }
  | {
      readonly kind: "response";
      readonly response: (request: RequestContext) => Response | Refusal;
    };

export interface CompiledRoute {
  readonly name: string;
  readonly document: Route;
  readonly index: number;
  readonly gates: readonly Gate[];
  readonly decorators: readonly Decorator[];
  readonly bodyFilters: readonly BodyFilter[];
  readonly responseStore: ResponseStore | undefined;
  readonly action: CompiledAction;
  readonly priority: number;
}

export interface RouteTable {
  /** Sets `route` and `pathParameters` of the request; false if no route matches. */
  resolve(request: RequestContext): boolean;
}

/** One published configuration, compiled and immutable; requests keep the one they started with. */
export interface Generation {
  readonly number: number;
  /** At most 53 bits, so that a JSON number holds it exactly. */
  readonly contentHash: number;
  readonly document: ConfigDocument;
  readonly routes: RouteTable;
  readonly routeList: readonly CompiledRoute[];
  readonly trustedProxies: TrustedProxies;
  /** Default: X-Request-Id. */
  readonly requestIdField?: RequestIdField;
  /** Via marks for forwarded messages. */
  readonly via?: Via;
  readonly tracer?: Tracer;
  /** Gates for requests without a route, by listener name. */
  readonly unroutedGates: ReadonlyMap<string, readonly Gate[]>;
}

/** A whole response that the gateway creates itself. */
export interface Response {
  readonly status: number;
  /** Without framing, date or identity fields, which are added when it is sent. */
  readonly fields: RawFields;
  readonly body: Buffer | string;
}

/** A refusal; its body is the error envelope. `fields` are added to it. */
export interface Refusal {
  readonly code: ErrorCode;
  /** Replaces the default message of the code. */
  readonly message?: string;
  readonly fields?: RawFields;
  /** The client's stream is unusable: close the connection after the response. */
  readonly closes?: boolean;
}

/** Undefined: continue. Anything else is a short-circuit response that ends the request before its action. */
export type Verdict = Response | Refusal | undefined;

/** Checks requests of a route before its action, in the order of `pipeline-order.ts`. */
export interface Gate {
  /**
   * Must not throw for anything a client can cause. A promise costs a turn: return one only if the gate really waits.
   */
  check(request: RequestContext): Verdict | Promise<Verdict>;
}

/** Checks the request body on its way to the upstream, which gets the end only if the check passes. */
export interface BodyCheck {
  /** `piece` is valid during the call only. */
  readonly onData: (piece: SharedBytes) => void;
  /** The body is complete. A refusal is sent if no response was started; otherwise the response is aborted. */
  onEnd(): Refusal | undefined;
}

/** The head of a response for the client; `fields` may be changed in place. */
export interface ResponseHead {
  status: number;
  reason: string;
  readonly fields: RawFields;
}

/** Source of a response: the upstream; the route's action; or a gate or guard before it. */
export type ResponseOrigin = "upstream" | "action" | "short-circuit";

/** Changes response heads. */
export interface Decorator {
  /** `action-responses`: not on short-circuits. `every-path-response`: also on a 404 of its path. */
  readonly on: "action-responses" | "every-route-response" | "every-path-response";
  decorate(request: RequestContext, head: ResponseHead, origin: ResponseOrigin): void;
}

/** Changes requests for the upstream; logs and counters keep the request as the client sent it. */
export interface RequestChange {
  /** `target` is the result of the rewrite. */
  changeTarget?(target: string): string;
  /** `fields` are without Host and framing; changed in place. */
  changeFields?(fields: RawFields): void;
}

/** Changes response bodies, for example by compression. */
export interface BodyFilter {
  /** Returns a stream for the body, or undefined to leave it; may change the head if it returns one. */
  filter(request: RequestContext, head: ResponseHead, framing: Framing, origin: ResponseOrigin): Transform | undefined;
}

/** A stale response that is sent once more while a new one is fetched without the client. */
interface StaleResponse {
  readonly stale: Response;
  /** Conditions with which the new request lets the upstream confirm the old response. */
  readonly conditions: Readonly<RawFields>;
}

/** A stored response that must be revalidated with its upstream before it is sent. */
interface UnvalidatedResponse {
  /** Conditions of the revalidation request. */
  readonly validation: Readonly<RawFields>;
}

/** Result of a lookup; after `miss` the response may be stored. */
export type KeptResponse = Response | Refusal | StaleResponse | UnvalidatedResponse | "miss" | "bypass";

export interface ResponseStore {
  /** After `miss` and `validation`, and after `stale` for the refresh request, `capture` or `abandon` is called. */
  lookup(request: RequestContext): KeptResponse | Promise<KeptResponse>;
  /**
   * Called with the response head after a `miss`; returns a receiver for the body, or undefined not to store it.
   * After a 304 to a `validation`: the response for the client.
   */
  capture(request: RequestContext, head: ResponseHead, framing: Framing): ResponseCapture | Response | undefined;
  /** A `miss` got no response. */
  abandon(request: RequestContext): void;
}

export interface ResponseCapture {
  readonly data: (piece: SharedBytes) => void;
  end(): void;
  abandon(): void;
}

/** A finished request, for counters and logs. */
export interface FinishedRequest {
  readonly request: RequestContext;
  /** 0 if the client disconnected before a response was started. */
  readonly status: number;
  readonly origin: ResponseOrigin;
  /** Code of the error body, if any. */
  readonly code: ErrorCode | undefined;
  readonly durationMs: number;
  readonly sentBytes: number;
  readonly isComplete: boolean;
}

/** Observes finished requests; cannot change or delay them. */
export interface Observer {
  onFinished(finished: FinishedRequest): void;
}

export interface Tracer {
  /** Undefined: the request is not traced. */
  begin(request: RequestContext): RequestTrace | undefined;
}

/** The trace of one request. Its end is reported to observers. */
export interface RequestTrace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** Starts an attempt at an endpoint, `address:port`. */
  attempt(upstream: string, endpoint: string, isSecure: boolean): AttemptTrace;
}

export interface AttemptTrace {
  /** The request is sent with these fields; adds the trace context to them. */
  send(fields: RawFields, target: string): void;
  answered(status: number): void;
  /** The attempt ended; only the first call counts. */
  ended(failure?: string): void;
}

/** Reports that a rule in dry run would have refused a request; `detail` names the rule and the measured value. */
export type DryRunReport = (request: RequestContext, wouldBeStatus: number, detail: string) => void;

/** Creates the report of one phase: a log line for each avoided refusal, and `count` for its metric. */
export function dryRunReport(log: Logger, phase: string, count: (route: string) => void): DryRunReport {
  return (request, wouldBeStatus, detail) => {
    const route = request.route?.name ?? "unrouted";
    count(route);
    log.warn(
      {
        code: "policy_dry_run",
        target: "gateway::policy",
        phase,
        would_be_status: wouldBeStatus,
        route,
        consumer: request.consumer?.name ?? "anonymous",
        request_id: request.requestId,
        detail,
      },
      "Without dry run, this request would have been refused",
    );
  };
}

type CredentialType = NonNullable<Consumer["credentials"]>[number]["type"];

const REALM = 'realm="gateway"';

/**
 * The `WWW-Authenticate` fields of every 401 of a generation (RFC 9110 section 11.6.1): one per credential type in
 * the document. A 401 must have one, so without credentials it names the API key.
 */
export function challengesOf(document: ConfigDocument): Readonly<RawFields> {
  const types = new Set<CredentialType>();
  for (const { credentials = [] } of document.consumers) for (const { type } of credentials) types.add(type);
  const { jwt_providers: keyed = [], oidc_providers: introspected = [] } = document.gateway;
  if (keyed.length > 0 || introspected.length > 0) types.add("jwt");
  const challenges: string[] = [];
  if (types.has("api_key")) challenges.push(`ApiKey ${REALM}`);
  if (types.has("basic")) challenges.push(`Basic ${REALM}, charset="UTF-8"`);
  if (types.has("jwt")) challenges.push(`Bearer ${REALM}`);
  if (types.has("hmac")) challenges.push(`Gateway-HMAC-SHA256 ${REALM}`);
  if (types.has("mtls")) challenges.push(`TLS-Client-Certificate ${REALM}`);
  if (challenges.length === 0) challenges.push(`ApiKey ${REALM}`);
  return challenges.flatMap((challenge) => ["WWW-Authenticate", challenge]);
}
