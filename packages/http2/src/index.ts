export {
  CANCEL,
  CONNECT_ERROR,
  ENHANCE_YOUR_CALM,
  HTTP_1_1_REQUIRED,
  http2CodeName,
  INTERNAL_ERROR,
  NO_ERROR,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
} from "./codes.ts";
export { isSendable, sectionField } from "./field-rules.ts";
export { sectionLimits } from "./hpack/hpack-decoder.ts";
export { Http2Error } from "./http2-error.ts";
export { beginsAsHttp2 } from "./preface.ts";
export { ResetAllowance } from "./reset-allowance.ts";
export { Http2Session } from "./session.ts";
export type { SessionEvents, SessionOptions } from "./session-events.ts";
export { Http2Stream, type StreamHandler } from "./stream.ts";
export { StreamSocket } from "./stream-socket.ts";
