import { anthropic } from "./anthropic.ts";
import {
  asCount,
  asName,
  asObject,
  asObjects,
  asText,
  type ChatEvent,
  type ChatReader,
  type ChatResponse,
  type Facts,
  type OpenChoice,
  OpenResponse,
  parsedObject,
  type ReadEvent,
} from "./chat-response.ts";
import { google } from "./google.ts";
import { ollama } from "./ollama.ts";
import { openAiChat } from "./openai-chat.ts";

/** Arguments come by events of these types, for functions, free-form tools and remote ones. */
const ARGUMENT_PIECES = new Set([
  "response.function_call_arguments.delta",
  "response.custom_tool_call_input.delta",
  "response.mcp_call_arguments.delta",
]);

const ARGUMENTS_DONE = new Set([
  "response.function_call_arguments.done",
  "response.custom_tool_call_input.done",
  "response.mcp_call_arguments.done",
]);

const CALLS = new Set(["function_call", "custom_tool_call", "mcp_call"]);

/** The answer ended, for better or worse. */
const ENDS = new Set(["response.completed", "response.incomplete", "response.failed", "response.cancelled"]);

/** Responses as OpenAI streams them: one output, whose items follow each other. */
const openAiResponses: ChatReader = {
  format: "openai-responses",
  recognises: ({ facts }) => asText(facts?.["type"])?.startsWith("response.") === true,

  read({ facts }, chat) {
    const type = asText(facts?.["type"]);
    const choice = chat.choice(0);
    if (facts === undefined || type === undefined || choice === undefined) return;
    const response = asObject(facts["response"]);
    if (response !== undefined) readResponse(response, chat);
    if (ENDS.has(type)) chat.isComplete = true;
    readPiece(type, facts, choice);
    if (type === "response.output_item.added" || type === "response.output_item.done") readItem(facts, choice);
  },
};

const READERS: readonly ChatReader[] = [openAiResponses, anthropic, openAiChat, google, ollama];
/** A stream that is no chat after so many events is not looked into further. */
const MAX_EVENTS_UNKNOWN = 32;

/**
 * Puts a chat-completion stream together from its events, however far it got. The form is recognised by the first event
 * that can be of one form only; events that are unknown, or no JSON, change nothing. Memory is bounded, and no input
 * makes it throw.
 */
export class ChatAssembler {
  readonly #response = new OpenResponse();
  #reader: ChatReader | undefined;
  #eventsUnknown = 0;
  #error: string | null = null;

  /** The stream is none of a chat, and no more events are needed to say so. */
  get isHopeless(): boolean {
    return this.#reader === undefined && this.#eventsUnknown >= MAX_EVENTS_UNKNOWN;
  }

  add(event: ChatEvent): void {
    if (this.isHopeless) return;
    const read: ReadEvent = { ...event, facts: parsedObject(event.data) };
    this.#error ??= errorOf(read);
    this.#reader ??= READERS.find((reader) => reader.recognises(read));
    if (this.#reader === undefined) this.#eventsUnknown += 1;
    else this.#reader.read(read, this.#response);
  }

  /** The response so far; undefined if the stream is not known to be a chat. */
  response(): ChatResponse | undefined {
    if (this.#reader === undefined) return undefined;
    const response = this.#response.close(this.#reader.format);
    return response.error === null ? { ...response, error: this.#error } : response;
  }
}

/** All providers put an object with a message there, or say it flatly in an event of that type. */
function errorOf({ event, facts }: ReadEvent): string | null {
  const error = asObject(facts?.["error"]);
  const flat = asName(facts?.["error"]);
  if (error !== undefined) return asName(error["message"]) ?? asName(error["type"]) ?? "An error without a message";
  if (flat !== undefined) return flat;
  const isError = event === "error" || asText(facts?.["type"]) === "error";
  return isError ? (asName(facts?.["message"]) ?? null) : null;
}

function readPiece(type: string, facts: Facts, choice: OpenChoice): void {
  const delta = asText(facts["delta"]);
  switch (type) {
    case "response.output_text.delta":
      return choice.text.add(delta);
    case "response.refusal.delta":
      return choice.refusal.add(delta);
    case "response.reasoning_text.delta":
    case "response.reasoning_summary_text.delta":
      return choice.reasoning.add(delta);
    case "response.reasoning_summary_part.added":
      // Parts of a summary are paragraphs.
      if (!choice.reasoning.isEmpty) choice.reasoning.add("\n\n");
      return;
    default:
      if (ARGUMENT_PIECES.has(type)) choice.toolCall(keyOf(facts))?.arguments.add(delta);
      if (ARGUMENTS_DONE.has(type)) {
        choice.toolCall(keyOf(facts))?.arguments.settle(asText(facts["arguments"]) ?? asText(facts["input"]));
      }
  }
}

/** An item of the output begins or is complete. */
function readItem(facts: Facts, choice: OpenChoice): void {
  const item = asObject(facts["item"]);
  if (item === undefined || !CALLS.has(asText(item["type"]) ?? "")) return;
  const call = choice.toolCall(keyOf(facts));
  if (call === undefined) return;
  call.id ??= asName(item["call_id"]) ?? asName(item["id"]) ?? null;
  if (call.name === "") call.name = asText(item["name"]) ?? "";
  call.arguments.settle(asName(item["arguments"]) ?? asName(item["input"]));
}

/** Items are told apart by their place; a proxy that leaves it out may keep their id. */
function keyOf(facts: Facts): string | number {
  return asCount(facts["output_index"]) ?? asText(facts["item_id"]) ?? 0;
}

function readResponse(response: Facts, chat: OpenResponse): void {
  const choice = chat.choice(0);
  chat.id ??= asName(response["id"]) ?? null;
  chat.model ??= asName(response["model"]) ?? null;
  chat.error = asName(asObject(response["error"])?.["message"]) ?? chat.error;
  const status = asName(response["status"]);
  if (choice !== undefined && status !== undefined && status !== "in_progress" && status !== "queued") {
    choice.finishReason = asName(asObject(response["incomplete_details"])?.["reason"]) ?? status;
  }
  readUsage(asObject(response["usage"]), chat);
  // Some streams bring the text at the end only.
  if (choice?.text.isEmpty === true) {
    for (const item of asObjects(response["output"])) {
      for (const part of asObjects(item["content"])) choice.text.add(asText(part["text"]));
    }
  }
}

function readUsage(usage: Facts | undefined, chat: OpenResponse): void {
  if (usage === undefined) return;
  chat.count({
    inputTokens: asCount(usage["input_tokens"]),
    outputTokens: asCount(usage["output_tokens"]),
    totalTokens: asCount(usage["total_tokens"]),
    cachedInputTokens: asCount(asObject(usage["input_tokens_details"])?.["cached_tokens"]),
    reasoningTokens: asCount(asObject(usage["output_tokens_details"])?.["reasoning_tokens"]),
  });
}
