import type { Framing, RawFields } from "@headworks/http1";
import type { CompiledRoute, Generation } from "./generation.ts";
import type { ListenerFacts, Peer } from "./client-stream.ts";
import type { BodyCheck } from "./phases.ts";
import type { RequestTrace } from "./request-trace.ts";

/** A consumer that a request was recognised as, compiled from the document. */
export interface ConsumerIdentity {
  readonly name: string;
  readonly groups: readonly string[];
  readonly priority: number | undefined;
  /** How it proved who it is. */
  readonly credential: "api_key" | "basic" | "jwt" | "mtls" | "hmac";
  /** Claims of its token; only with `jwt`. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** What happened on the way to the upstream; for logs and metrics. */
export interface UpstreamFacts {
  upstream: string;
  endpoint: string;
  attempts: number;
  /** Why the last attempt that came to nothing did, in words: a class of failures, and what was found. */
  failure: string | undefined;
}

/** What is known of one request while it is handled. Everything downstream receives this value. */
export class RequestContext {
  /** The configuration that was current when the head was read; the request keeps it to its end. */
  readonly generation: Generation;
  readonly listener: ListenerFacts;
  readonly peer: Peer;
  readonly startedMs: number;
  readonly version: "1.0" | "1.1" | "2";
  readonly method: string;
  /** Target in origin form, path and query; the path is canonical. */
  readonly target: string;
  /** The part of `target` before `?`; checked: no dot segments, no backslash, no control bytes. */
  readonly path: string;
  /** `target` as the client wrote it, and perhaps signed it. */
  readonly sentTarget: string;
  /** The part behind `?`, raw; undefined without `?`. */
  readonly query: string | undefined;
  /** Host and port the client asked for. */
  readonly authority: string | undefined;
  /** Fields as the client sent them. */
  readonly fields: Readonly<RawFields>;
  readonly framing: Framing;
  /** Lower-case protocol a client offers to switch to, if it may be followed. */
  readonly upgrade: string | undefined;
  requestId = "";
  /** What the client calls the whole that this request is a part of; the id of the request where it does not say. */
  correlationId = "";
  route: CompiledRoute | undefined;
  /** The route that its path decided on, where something else that this asks for is not there; `route` is undefined then. */
  missedRoute: CompiledRoute | undefined;
  /** Parameters of an exact path template or named groups of a pattern. */
  pathParameters: Readonly<Record<string, string>> | undefined;
  consumer: ConsumerIdentity | undefined;
  /** Lower-case names of fields that carried the credential and are not for the upstream. */
  credentialFields: ReadonlySet<string> | undefined;
  /** Fields to add to every answer, such as limits that apply; slices push pairs. */
  responseFields: RawFields | undefined;
  upstream: UpstreamFacts | undefined;
  /** Sent to the upstream in place of the client's conditions: they ask whether a stored response is still valid. */
  validation: Readonly<RawFields> | undefined;
  /** The request whose stale answer this one is to replace; nobody waits for its own. */
  refreshes: RequestContext | undefined;
  /** The request's body may have so many bytes; a longer one ends the exchange, with 413 while no answer was begun. */
  bodyLimitBytes = Number.POSITIVE_INFINITY;
  /** What the body has to pass before the upstream gets its end; asked only of requests that have one. */
  bodyCheck: BodyCheck | undefined;
  /** What is noted of it, if somebody wants to know. */
  trace: RequestTrace | undefined;
  /** While it waits for a permit: gives up its place. */
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
    /** Unless it is the target. */
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

  /** The address of the client: the peer, or behind trusted proxies the last address they do not vouch for. */
  get clientAddress(): string {
    return (this.#clientAddress ??= this.generation.trustedProxies.clientAddress(this.peer.address, this.fields));
  }

  /** Adds a field to whatever answer this request gets. */
  addResponseField(name: string, value: string): void {
    (this.responseFields ??= []).push(name, value);
  }
}
