/** The step at which an exchange failed. */
export type FailureStage =
  | "resolve"
  | "connect"
  | "proxy-handshake"
  | "tls"
  | "send"
  | "receive"
  | "client-read"
  | "client-write"
  | "policy";

/** Stable codes of data-path failures, used in entries, error pages and counters. */
export type FailureCode =
  | "DNS_NOT_FOUND"
  | "DNS_FAILED"
  | "UPSTREAM_REFUSED"
  | "UPSTREAM_UNREACHABLE"
  | "UPSTREAM_RESET"
  | "UPSTREAM_CLOSED"
  | "UPSTREAM_TIMEOUT"
  | "UPSTREAM_CERTIFICATE"
  | "UPSTREAM_TLS"
  | "UPSTREAM_CLIENT_CERTIFICATE"
  | "UPSTREAM_PROTOCOL"
  | "UPSTREAM_PROXY_UNREACHABLE"
  | "UPSTREAM_PROXY_TIMEOUT"
  | "UPSTREAM_PROXY_TLS"
  | "UPSTREAM_PROXY_AUTH"
  | "UPSTREAM_PROXY_DENIED"
  | "UPSTREAM_PROXY_CONNECT"
  | "UPSTREAM_PROXY_PROTOCOL"
  | "UPSTREAM_PROXY_CLOSED"
  | "UPSTREAM_PROXY_CANNOT_TUNNEL"
  | "CLIENT_CERTIFICATE_REFUSED"
  | "CLIENT_TLS"
  | "CLIENT_ABORTED"
  | "CLIENT_TIMEOUT"
  | "CLIENT_PROTOCOL"
  | "LOOP"
  | "BLOCKED"
  | "NOT_ALLOWED"
  | "SHUTDOWN"
  | "INTERNAL";

/** Why an exchange ended without its regular response. Stored in the entry, counted, and explained to the client. */
export interface Failure {
  readonly stage: FailureStage;
  readonly side: "client" | "upstream" | "internal";
  readonly code: FailureCode;
  readonly message: string;
  readonly cause?: unknown;
  /** Code with which a peer reset its stream (RFC 9113, 7), passed on to the other side. */
  readonly resetCode?: number;
  /** Status for the client if the code's default is too general. */
  readonly status?: number;
}

/** Status of the error response: 504 for timeouts, 508 for loops, 502 otherwise. */
export function failureStatus(failure: Failure): number {
  if (failure.status !== undefined) return failure.status;
  switch (failure.code) {
    case "UPSTREAM_TIMEOUT":
    case "UPSTREAM_PROXY_TIMEOUT":
      return 504;
    case "LOOP":
      return 508;
    case "CLIENT_PROTOCOL":
      return 400;
    case "CLIENT_TIMEOUT":
      return 408;
    case "BLOCKED":
    case "NOT_ALLOWED":
      return 403;
    case "SHUTDOWN":
      return 503;
    case "INTERNAL":
      return 500;
    default:
      return 502;
  }
}
