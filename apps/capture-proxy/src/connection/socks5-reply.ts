import { REPLY, replyText } from "@headworks/socks5";
import type { ReplyCode } from "@headworks/socks5";
import type { Failure } from "#exchange/failure.ts";

/** The reply code of RFC 1928 that tells a SOCKS5 client of a failure. */
export function replyOf(failure: Failure): ReplyCode {
  switch (failure.code) {
    case "DNS_NOT_FOUND":
    case "DNS_FAILED":
      return REPLY.hostUnreachable;
    case "UPSTREAM_REFUSED":
      return REPLY.refused;
    case "UPSTREAM_TIMEOUT":
    case "UPSTREAM_PROXY_TIMEOUT":
      return failure.stage === "resolve" ? REPLY.hostUnreachable : REPLY.expired;
    case "UPSTREAM_UNREACHABLE":
      return unreachable(failure.cause);
    case "UPSTREAM_PROXY_CONNECT":
      return REPLY.hostUnreachable;
    case "BLOCKED":
    case "NOT_ALLOWED":
    case "LOOP":
    case "UPSTREAM_PROXY_DENIED":
      return REPLY.notAllowed;
    default:
      return REPLY.generalFailure;
  }
}

/** Which part of the way was missing, by the system's error; of several attempts the first counts. */
function unreachable(cause: unknown): ReplyCode {
  const { errors, code } = (cause ?? {}) as { errors?: readonly { code?: unknown }[]; code?: unknown };
  switch (errors?.[0]?.code ?? code) {
    case "ENETUNREACH":
    case "ENETDOWN":
      return REPLY.networkUnreachable;
    case "EHOSTUNREACH":
    case "EHOSTDOWN":
      return REPLY.hostUnreachable;
    default:
      return REPLY.generalFailure;
  }
}

/** The status of an entry: the specification knows two for SOCKS5. */
export function entryStatusOf(failure: Failure): 502 | 504 {
  return failure.code === "UPSTREAM_TIMEOUT" || failure.code === "UPSTREAM_PROXY_TIMEOUT" ? 504 : 502;
}

/** The body of an entry: the reply code that the client got, and the error behind it. */
export function entryText(reply: ReplyCode, failure: Failure): string {
  return `SOCKS5 reply ${reply} (${replyText(reply)})\n${failure.code}: ${failure.message}\n`;
}
