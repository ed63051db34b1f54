export {
  allowedTrailers,
  areSameFields,
  connectionOptions,
  countDownForwards,
  countedDown,
  fieldValue,
  fieldValues,
  hasField,
  type HopByHopOptions,
  isLastRecipient,
  removeField,
  setField,
  setFraming,
  tracedRequest,
  type TracedRequest,
  withoutHopByHop,
} from "./fields.ts";
export {
  CHUNKED,
  type FieldLines,
  type Framing,
  hasBody,
  HTTP1_ERROR_CODES,
  Http1Error,
  type Http1ErrorCode,
  lengthFraming,
  type Limits,
  NO_BODY,
  type Oddity,
  type RawFields,
  REQUEST_LIMITS,
  type RequestHead,
  RESPONSE_LIMITS,
  type ResponseHead,
  type TargetForm,
  UNTIL_CLOSE,
  type Version,
} from "./message.ts";
export type { MessageSink, ReaderState } from "./message-reader.ts";
export { readRefusedHead, type RefusedHead, RequestReader, type RequestReaderOptions } from "./request-reader.ts";
export { ResponseReader, type ResponseReaderOptions, type ResponseSink } from "./response-reader.ts";
export {
  CHUNK_END,
  chunkPrefix,
  LAST_CHUNK,
  lastChunkWithTrailers,
  requestHeadText,
  responseHeadText,
} from "./serialize.ts";
export { asciiTarget, isAuthority, isAuthorityWithPort, ownText, wireText } from "./grammar.ts";
export {
  announcedFraming,
  CONNECTION_FIELDS,
  type Http2Request,
  type Http2RequestProblem,
  isHttp2Te,
  readHttp2Request,
} from "./http2-request.ts";
export {
  DownstreamState,
  type AfterResponse,
  type AfterClientEnd,
  type AfterRefusal,
  type ResponseStart,
} from "./downstream-state.ts";
export { isIdempotent, UpstreamState, type UpstreamRequest } from "./upstream-state.ts";
