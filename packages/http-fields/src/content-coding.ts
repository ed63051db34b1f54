/** Content codings and body text; this entry needs node:zlib. */
export { decodeBeginningSync, decodeContentSync } from "./decode-at-once.ts";
export { createContentDecoder, decodeContent, type ContentDecoder } from "./decode-in-pieces.ts";
export {
  decodingPlan,
  parseContentEncoding,
  remainingCodings,
  type ContentCoding,
  type DecodedContent,
  type DecodingLimits,
  type DecodingStop,
} from "./decoding-plan.ts";
export { encodeContent } from "./encode-content.ts";
export { encodeInPieces } from "./encode-in-pieces.ts";
export { declaredCharset, encodeAsDeclared, encodeText } from "./encode-text.ts";
export { decodeText, type DecodedText } from "./text-decoding.ts";
