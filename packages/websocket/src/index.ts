export {
  type CloseFacts,
  closePayload,
  closeText,
  isSendableCloseCode,
  MessageReader,
  type MessageReaderOptions,
  readClose,
  type ReadFrame,
  type ReadMessage,
} from "./message-reader.ts";
export {
  type DeflateParameters,
  type Inflated,
  MessageDeflater,
  MessageInflater,
  type NegotiatedExtensions,
  readDeflate,
} from "./compression.ts";
export {
  frameBytes,
  FrameReader,
  type FrameReaderOptions,
  isControl,
  opcodeName,
  type OpcodeName,
  OPCODES,
  type OutgoingFrame,
  type Violation,
  type WireFrame,
} from "./frames.ts";
