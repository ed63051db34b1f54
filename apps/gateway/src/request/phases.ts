import type { SharedBytes } from "@headworks/sockets";
import type { Transform } from "node:stream";
import type { ErrorCode } from "@headworks/gateway-contract";
import type { Framing, RawFields } from "@headworks/http1";
import type { RequestContext } from "./context.ts";

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

/**
 * Source of a response: the upstream; the route's action (redirect, respond, and its failures such as 502 and 504);
 * or a gate or guard before it.
 */
export type ResponseOrigin = "upstream" | "action" | "short-circuit";

/** Changes response heads. */
export interface Decorator {
  /**
   * `action-responses`: never on short-circuit responses. `every-path-response`: also on a 404 where only the path of
   * the route matched.
   */
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
export interface StaleResponse {
  readonly stale: Response;
  /** Conditions with which the new request lets the upstream confirm the old response. */
  readonly conditions: Readonly<RawFields>;
}

/** A stored response that must be revalidated with its upstream before it is sent. */
export interface UnvalidatedResponse {
  /** Conditions of the revalidation request. */
  readonly validation: Readonly<RawFields>;
}

/** Result of a lookup; after `miss` the response may be stored. */
export type KeptResponse = Response | Refusal | StaleResponse | UnvalidatedResponse | "miss" | "bypass";

/** Stores responses for later requests. */
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

/** Traces requests; called once per request. */
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
