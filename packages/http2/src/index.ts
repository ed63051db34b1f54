export {
  CANCEL,
  CONNECT_ERROR,
  ENHANCE_YOUR_CALM,
  http2CodeName,
  Http2Error,
  HTTP_1_1_REQUIRED,
  INTERNAL_ERROR,
  NO_ERROR,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
} from "./codes.ts";
export { isSendable, sectionField } from "./field-rules.ts";
export { sectionLimits } from "./hpack/hpack-decoder.ts";
export { beginsAsHttp2 } from "./frames.ts";
export { ResetAllowance } from "./flood-limits.ts";
export { Http2Session, type SessionEvents, type SessionOptions } from "./session.ts";
export { Http2Stream, type StreamHandler } from "./stream.ts";
export { StreamSocket } from "./stream-socket.ts";
