export { closePayload, closeText, isSendableCloseCode, readClose, type CloseFacts } from "./close.ts";
export { readDeflate, type DeflateParameters, type NegotiatedExtensions } from "./extensions.ts";
export { FrameReader, type FrameReaderOptions, type Violation, type WireFrame } from "./frame-reader.ts";
export { frameBytes, type OutgoingFrame } from "./frame-writer.ts";
export { MessageDeflater } from "./message-deflater.ts";
export { MessageInflater, type Inflated } from "./message-inflater.ts";
export { MessageReader, type MessageReaderOptions, type ReadFrame, type ReadMessage } from "./message-reader.ts";
export { isControl, OPCODES, opcodeName, type OpcodeName } from "./opcodes.ts";
