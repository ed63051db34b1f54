export { Base64Reader } from "./base64-reader.ts";
export { parseCallForm, parseCallPath, parseTimeoutMs, type CallForm, type CallPath } from "./call.ts";
export {
  decompress,
  decompressSync,
  ENCODINGS,
  isEncoding,
  type Decompressed,
  type DecompressionStop,
  type Encoding,
} from "./decompress.ts";
export {
  frameMessage,
  MessageReader,
  type MessageReaderOptions,
  type ReaderEnd,
  type WireMessage,
} from "./message-reader.ts";
export { decodePercent, readStatus, readTrailerMessage, statusOfHttp, type CallStatus } from "./status.ts";
