/** Frame types (RFC 9113, 6). */
export const DATA = 0;
export const HEADERS = 1;
export const PRIORITY = 2;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PUSH_PROMISE = 5;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;

/** Frame flags. */
export const END_STREAM = 0x1;
export const ACK = 0x1;
export const END_HEADERS = 0x4;
export const PADDED = 0x8;
export const WITH_PRIORITY = 0x20;

/** Error codes (RFC 9113, 7). */
export const NO_ERROR = 0;
export const PROTOCOL_ERROR = 1;
export const INTERNAL_ERROR = 2;
export const FLOW_CONTROL_ERROR = 3;
export const STREAM_CLOSED = 5;
export const FRAME_SIZE_ERROR = 6;
export const REFUSED_STREAM = 7;
export const CANCEL = 8;
export const COMPRESSION_ERROR = 9;
export const CONNECT_ERROR = 10;
export const ENHANCE_YOUR_CALM = 11;
export const HTTP_1_1_REQUIRED = 13;

const NAMES: readonly string[] = [
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
];

/** The name of an error code (RFC 9113, 7). */
export function http2CodeName(code: number): string {
  return NAMES[code] ?? `code ${code}`;
}

/** A connection error with its code (RFC 9113, 5.4.1). */
export class Http2Error extends Error {
  override readonly name = "Http2Error";
  readonly code = "ERR_HTTP2_CONNECTION";
  readonly http2Code: number;

  constructor(http2Code: number, message: string) {
    super(`${message} (${http2CodeName(http2Code)})`);
    this.http2Code = http2Code;
  }
}
