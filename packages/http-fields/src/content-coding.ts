/** Content codings and body text; this entry needs node:zlib. */
export {
  type ContentCoding,
  type ContentDecoder,
  createContentDecoder,
  decodeBeginningSync,
  decodeContent,
  decodeContentSync,
  type DecodedContent,
  type DecodingLimits,
  decodingPlan,
  type DecodingStop,
  parseContentEncoding,
  remainingCodings,
} from "./decode-content.ts";
export { declaredCharset, encodeAsDeclared, encodeContent, encodeInPieces, encodeText } from "./encode-content.ts";
export { type DecodedText, decodeText } from "./text-decoding.ts";
