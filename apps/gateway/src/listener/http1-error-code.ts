import type { ErrorCode } from "@headworks/gateway-contract";
import type { Http1Error } from "@headworks/http1";

/** What a client is told of a request that cannot be read. */
export function http1ErrorCode({ status, code }: Http1Error): ErrorCode {
  switch (status) {
    case 431:
      return "request_headers_too_large";
    case 501:
      return "unknown_transfer_coding";
    case 505:
      return "version_not_supported";
    default:
      return code === "content-length-with-transfer-encoding" ? "ambiguous_framing" : "bad_request";
  }
}
