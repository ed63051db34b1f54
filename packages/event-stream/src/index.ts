export { EventReader, type EventBlock, type EventReaderOptions } from "./event-reader.ts";
export { type JsonItem, type JsonStreamForm, type JsonStreamOptions, JsonStreamReader } from "./json-stream-reader.ts";
export { ChatAssembler } from "./chat/chat-assembler.ts";
export type { ChatChoice, ChatEvent, ChatFormat, ChatResponse, ChatUsage, ToolCall } from "./chat/chat-response.ts";
