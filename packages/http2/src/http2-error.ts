import { http2CodeName } from "./codes.ts";

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
