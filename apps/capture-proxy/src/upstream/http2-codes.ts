// Tested by ../../test/http2-resets.test.ts
import { constants } from "node:http2";

const NAMES: ReadonlyMap<number, string> = new Map(
  [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
  ].map((name, code) => [code, name]),
);

export const {
  NGHTTP2_CANCEL: CANCEL,
  NGHTTP2_CONNECT_ERROR: CONNECT_ERROR,
  NGHTTP2_ENHANCE_YOUR_CALM: ENHANCE_YOUR_CALM,
  NGHTTP2_HTTP_1_1_REQUIRED: HTTP_1_1_REQUIRED,
  NGHTTP2_INTERNAL_ERROR: INTERNAL_ERROR,
  NGHTTP2_NO_ERROR: NO_ERROR,
  NGHTTP2_PROTOCOL_ERROR: PROTOCOL_ERROR,
  NGHTTP2_REFUSED_STREAM: REFUSED_STREAM,
} = constants;

/** The name of an error code of HTTP/2 (RFC 9113, 7), for people. */
export function http2CodeName(code: number): string {
  return NAMES.get(code) ?? `code ${code}`;
}
