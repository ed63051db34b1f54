/** HTTP field values; safe for the browser. Content codings are in the entry `./content-coding`. */
export { negotiate, parseAccept, parseAcceptEncoding, prefersHtml, type MediaRange } from "./accept.ts";
export { decodeJwt, parseAuthorization, type Authorization, type Jwt } from "./authorization.ts";
export { closeCodeText } from "./close-code.ts";
export { formatCookies, parseCookies, parseSetCookie, type Cookie, type SetCookie } from "./cookies.ts";
export { dependsOnReading, utf8Octets, utf8Reading, wireText } from "./field-text.ts";
export { GRPC_STATUS_NAMES, parseGrpcStatus } from "./grpc-status.ts";
export { formatHttpDate, parseCookieDate, parseHttpDate, parseImfFixdate, type ImfFixdate } from "./http-date.ts";
export { appendHttp2Fields, withoutPseudoFields } from "./http2-fields.ts";
export { formatLink } from "./link.ts";
export { isGrpc, isJson, isTextual, isXml, parseMediaType, type MediaType, type MediaTypeLike } from "./media-type.ts";
export {
  multipartBoundary,
  parseMultipart,
  parseMultipartBody,
  type Multipart,
  type MultipartLimits,
  type MultipartPart,
} from "./multipart.ts";
export { parseParameter, splitOutsideQuotes, type Parameter } from "./parameters.ts";
export { reasonPhrase } from "./reason-phrases.ts";
export { resourceType, resourceTypes, type ResourceHints, type ResourceType } from "./resource-type.ts";
export { parseDictionary, type StructuredValue } from "./structured-fields.ts";
export { decodeText, type DecodedText } from "./text-decoding.ts";
export { foldVary } from "./vary.ts";
export { formatUrlEncoded, parseQuery, parseUrlEncoded, percentDecoded, type QueryParameter } from "./url-encoded.ts";
