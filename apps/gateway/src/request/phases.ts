import type { Transform } from "node:stream";
import type { ErrorCode } from "@headworks/gateway-contract";
import type { Framing, RawFields } from "@headworks/http1";
import type { RequestContext } from "./context.ts";

/** A whole answer that the gateway gives itself. */
export interface Response {
  readonly status: number;
  /** Without framing, date or identity fields: those are added when it is sent. */
  readonly fields: RawFields;
  readonly body: Buffer | string;
}

/** A refusal: its body is the error envelope, made when it is sent. `fields` come on top. */
export interface Refusal {
  readonly code: ErrorCode;
  /** Instead of the code's own sentence. */
  readonly message?: string;
  readonly fields?: RawFields;
  /** The client cannot be followed any more: the connection is closed behind the answer. */
  readonly closes?: boolean;
}

/** Undefined: go on. Anything else is a short-circuit answer: it ends the request before its action. */
export type Verdict = Response | Refusal | undefined;

/** Looks at requests of a route before its action, in the order of `pipeline-order.ts`. */
export interface Gate {
  /** Must not throw for anything a client can cause. A promise costs a turn: only where something is waited for. */
  check(request: RequestContext): Verdict | Promise<Verdict>;
}

/** Looks at the body of a request on its way to the upstream, which gets its end only when the check agrees. */
export interface BodyCheck {
  /** The piece is valid during the call only. */
  onData(piece: Buffer): void;
  /** The body is complete. A refusal is sent while no answer was begun; otherwise the answer is cut off. */
  onEnd(): Refusal | undefined;
}

/** The head of an answer on its way to the client; `fields` may be changed in place. */
export interface ResponseHead {
  status: number;
  reason: string;
  readonly fields: RawFields;
}

/**
 * Where an answer was made: by the upstream; by the route's action (redirect, respond, and failures of the action
 * itself such as 502 and 504); or by a gate or guard before it.
 */
export type ResponseOrigin = "upstream" | "action" | "short-circuit";

/** Changes heads of answers. */
export interface Decorator {
  /**
   * `action-responses`: never on short-circuit answers. `every-path-response`: also on 404 where the path of a request
   * decided on the route, but something else that the route asks for was not there.
   */
  readonly on: "action-responses" | "every-route-response" | "every-path-response";
  decorate(request: RequestContext, head: ResponseHead, origin: ResponseOrigin): void;
}

/** Changes requests on their way to the upstream; what is kept and counted of a request is as the client sent it. */
export interface RequestChange {
  /** `target` is what would be asked for, after the rewrite. */
  changeTarget?(target: string): string;
  /** Fields as they would be sent, without Host and framing; changed in place. */
  changeFields?(fields: RawFields): void;
}

/** Changes bodies of answers, such as compression. */
export interface BodyFilter {
  /** A stream to send the body through, or undefined to leave it; may change the head when it gives one. */
  filter(request: RequestContext, head: ResponseHead, framing: Framing, origin: ResponseOrigin): Transform | undefined;
}

/** An answer that is too old, and given all the same once more while a new one is asked for without the client. */
export interface StaleResponse {
  readonly stale: Response;
  /** For the request for the new one: what lets the upstream say that the old one is as good as ever. */
  readonly conditions: Readonly<RawFields>;
}

/** A stored response that may not be sent before its upstream has said that it is still valid. */
export interface UnvalidatedResponse {
  /** Conditions of the request to the upstream. */
  readonly validation: Readonly<RawFields>;
}

/** What a store has for a request; `miss` may become an answer to keep. */
export type KeptResponse = Response | Refusal | StaleResponse | UnvalidatedResponse | "miss" | "bypass";

/** Keeps answers for later requests. */
export interface ResponseStore {
  /**
   * After `miss` and `validation`, and after `stale` for the request that is made then, `capture` or `abandon` is called.
   */
  lookup(request: RequestContext): KeptResponse | Promise<KeptResponse>;
  /**
   * Called with the head of an answer to a `miss`; gives where its body goes, or undefined not to keep it. After 304 to a
   * `validation`, what the client gets in its place.
   */
  capture(request: RequestContext, head: ResponseHead, framing: Framing): ResponseCapture | Response | undefined;
  /** No answer came of a `miss`. */
  abandon(request: RequestContext): void;
}

export interface ResponseCapture {
  data(piece: Buffer): void;
  end(): void;
  abandon(): void;
}

/** A request that ended, for counters and logs. */
export interface FinishedRequest {
  readonly request: RequestContext;
  /** 0 if the client went away before an answer was started. */
  readonly status: number;
  readonly origin: ResponseOrigin;
  /** The code of the error body, if it had one. */
  readonly code: ErrorCode | undefined;
  readonly durationMs: number;
  readonly sentBytes: number;
  readonly isComplete: boolean;
}

/** Learns of requests; cannot change or delay them. */
export interface Observer {
  onFinished(finished: FinishedRequest): void;
}
