import { randomBytes } from "node:crypto";
import type { ErrorCode } from "@headworks/gateway-contract";
import { withoutPseudoFields } from "@headworks/http-fields";
import { readHttp2Request, type Http2RequestProblem } from "@headworks/http1";
import type { ReceivedHead } from "./connection-services.ts";

/** Why a field section of HTTP/2 is no request for us. */
export interface RefusedHead {
  readonly code: ErrorCode;
  readonly message: string;
}

const CODES: Readonly<Record<Http2RequestProblem["problem"], ErrorCode>> = {
  malformed: "bad_request",
  "too-many-fields": "request_headers_too_large",
  tunnel: "upgrade_not_supported",
};

const WEBSOCKET_KEY_BYTES = 16;

/** Makes a request of a field section `[name0, value0, …]`. `isWhole`: no body follows it. */
export function readHttp2Head(
  section: readonly string[],
  isWhole: boolean,
  maxFields: number,
): ReceivedHead | RefusedHead {
  const read = readHttp2Request(section, withoutPseudoFields(section), isWhole, maxFields);
  if ("problem" in read) return { code: CODES[read.problem], message: read.message };
  // What HTTP/1.1 proves with it that the server understood, HTTP/2 has no need of: clients send none (RFC 8441, 5).
  if (read.upgrade !== undefined) {
    read.fields.push("sec-websocket-key", randomBytes(WEBSOCKET_KEY_BYTES).toString("base64"));
  }
  return read;
}
