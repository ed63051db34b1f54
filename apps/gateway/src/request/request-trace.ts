import type { RawFields } from "@headworks/http1";
import type { RequestContext } from "./context.ts";

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
