export { EventReader, type EventBlock, type EventReaderOptions } from "./event-reader.ts";
export { JsonStreamReader, type JsonItem, type JsonStreamForm, type JsonStreamOptions } from "./json-stream-reader.ts";
export { ChatAssembler } from "./chat/chat-assembler.ts";
export type { ChatResponse, ChatChoice, ChatFormat, ChatUsage, ToolCall } from "./chat/chat-response.ts";
export type { ChatEvent } from "./chat/chat-reader.ts";
