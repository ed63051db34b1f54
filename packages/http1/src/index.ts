export {
  areSameFields,
  connectionOptions,
  fieldValue,
  fieldValues,
  hasField,
  removeField,
  setField,
  setFraming,
  withoutHopByHop,
  type HopByHopOptions,
} from "./fields.ts";
export { HTTP1_ERROR_CODES, Http1Error, type Http1ErrorCode } from "./http1-error.ts";
export {
  CHUNKED,
  hasBody,
  lengthFraming,
  NO_BODY,
  REQUEST_LIMITS,
  RESPONSE_LIMITS,
  UNTIL_CLOSE,
  type FieldLines,
  type Framing,
  type Limits,
  type Oddity,
  type RawFields,
  type RequestHead,
  type ResponseHead,
  type TargetForm,
  type Version,
} from "./message.ts";
export type { MessageSink, ReaderState } from "./message-reader.ts";
export { readRefusedHead, type RefusedHead } from "./refused-head.ts";
export { RequestReader, type RequestReaderOptions } from "./request-reader.ts";
export { ResponseReader, type ResponseReaderOptions, type ResponseSink } from "./response-reader.ts";
export {
  CHUNK_END,
  chunkPrefix,
  LAST_CHUNK,
  lastChunkWithTrailers,
  requestHeadText,
  responseHeadText,
} from "./serialize.ts";
export { ownText } from "./own-text.ts";
export { asciiTarget, wireText } from "./wire-text.ts";
export { announcedFraming } from "./http2-framing.ts";
export {
  CONNECTION_FIELDS,
  isHttp2Te,
  readHttp2Request,
  type Http2Request,
  type Http2RequestProblem,
} from "./http2-request.ts";
export { countedDown, countDownForwards, isLastRecipient, tracedRequest, type TracedRequest } from "./max-forwards.ts";
export { isAuthority, isAuthorityWithPort } from "./authority.ts";
export { allowedTrailers } from "./trailer-fields.ts";
export {
  DownstreamState,
  type AfterResponse,
  type AfterClientEnd,
  type AfterRefusal,
  type ResponseStart,
} from "./downstream-state.ts";
export { isIdempotent, UpstreamState, type UpstreamRequest } from "./upstream-state.ts";
