/** Why an outbound request got no response. */
export type EgressFailureCode =
  | "dns_failed"
  | "dns_timeout"
  | "ssrf_denied"
  | "filter_failed"
  | "connect_failed"
  | "tls_failed"
  | "connection_lost"
  | "bad_answer"
  | "answer_too_large"
  | "timeout";

/** A connection that failed or brought no response. The message contains no secret. */
export class EgressError extends Error {
  override readonly name = "EgressError";
  readonly code: EgressFailureCode;
  /** No further attempt must be made: the egress filter refused or failed. */
  readonly isFinal: boolean;

  constructor(code: EgressFailureCode, message: string, isFinal = false) {
    super(message);
    this.code = code;
    this.isFinal = isFinal;
  }
}

/** The failure for an aborted signal. */
export const timedOut = (): EgressError => new EgressError("timeout", "The time for the whole request is over");

/** `error` itself if it is an EgressError, otherwise one with `code`. */
export function asEgressError(error: unknown, code: EgressFailureCode): EgressError {
  if (error instanceof EgressError) return error;
  return new EgressError(code, error instanceof Error ? error.message : String(error));
}
