/** At which step an exchange failed. */
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

/** Stable codes of data-path failures; they stand on entries, in error pages and in counters. */
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

/** Why an exchange ended without its regular answer. Stored on the entry, counted, shown to the client in words. */
export interface Failure {
  readonly stage: FailureStage;
  readonly side: "client" | "upstream" | "internal";
  readonly code: FailureCode;
  readonly message: string;
  readonly cause?: unknown;
  /** What a peer said by ending its stream (RFC 9113, 7), to be said to the other side too. */
  readonly resetCode?: number;
  /** What the client is answered, where that of the code is too general. */
  readonly status?: number;
}

/** The status of the answer that tells the client of a failure: 504 for time, 508 for loops, 502 otherwise. */
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
