/** What kept a request of ours from being answered. */
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

/** A connection that was not made, or did not bring an answer. The message carries no secret. */
export class EgressError extends Error {
  override readonly name = "EgressError";
  readonly code: EgressFailureCode;
  /** The egress filter, or its failure, ends the whole undertaking: another attempt must not be made. */
  readonly isFinal: boolean;

  constructor(code: EgressFailureCode, message: string, isFinal = false) {
    super(message);
    this.code = code;
    this.isFinal = isFinal;
  }
}

/** The failure that a given-up signal stands for. */
export const timedOut = (): EgressError => new EgressError("timeout", "The time for the whole request is over");

/** `error` as it is if it is a failure of egress, otherwise as one with `code`. */
export function asEgressError(error: unknown, code: EgressFailureCode): EgressError {
  if (error instanceof EgressError) return error;
  return new EgressError(code, error instanceof Error ? error.message : String(error));
}
