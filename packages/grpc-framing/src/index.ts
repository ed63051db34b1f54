export {
  Base64Reader,
  frameMessage,
  MessageReader,
  type MessageReaderOptions,
  type ReaderEnd,
  type WireMessage,
} from "./message-reader.ts";
export {
  type CallForm,
  type CallPath,
  type CallStatus,
  decodePercent,
  parseCallForm,
  parseCallPath,
  parseTimeoutMs,
  readStatus,
  readTrailerMessage,
  statusOfHttp,
} from "./call.ts";
export {
  decompress,
  type Decompressed,
  type DecompressionStop,
  decompressSync,
  type Encoding,
  ENCODINGS,
  isEncoding,
} from "./decompress.ts";
