import type { RawFields } from "@headworks/http1";
import type { RequestContext } from "./context.ts";

/** Notes how requests were handled; asked once for each request of a generation that has one. */
export interface Tracer {
  /** Undefined: nothing is noted of this request. */
  begin(request: RequestContext): RequestTrace | undefined;
}

/** What is noted of one request. Its end is told to observers. */
export interface RequestTrace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** An attempt at an endpoint, `address:port`, begins. */
  attempt(upstream: string, endpoint: string, isSecure: boolean): AttemptTrace;
}

/** What is noted of one attempt. */
export interface AttemptTrace {
  /** The request goes out with these fields, which tell the upstream whose child it is. */
  send(fields: RawFields, target: string): void;
  answered(status: number): void;
  /** Nothing more comes of it; only the first call counts. `failure` says why nothing did. */
  ended(failure?: string): void;
}
