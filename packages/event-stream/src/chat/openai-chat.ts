import {
  asCount,
  asName,
  asObject,
  asObjects,
  asText,
  type ChatReader,
  type Facts,
  type OpenChoice,
  type OpenResponse,
} from "./chat-response.ts";

/** The choices of this form have a delta, a message, or (older) a text. */
function isChunk(facts: Facts): boolean {
  const kind = asText(facts["object"]);
  if (kind === "chat.completion.chunk" || kind === "text_completion" || kind === "chat.completion") return true;
  return asObjects(facts["choices"]).some((choice) => "delta" in choice || "finish_reason" in choice);
}

/** Chat completions as OpenAI streams them, and the many that speak like it. */
export const openAiChat: ChatReader = {
  format: "openai-chat",
  recognises: ({ facts }) => facts !== undefined && isChunk(facts),

  read({ data, facts }, response) {
    if (data.trim() === "[DONE]") response.isComplete = true;
    if (facts === undefined) return;
    response.id ??= asName(facts["id"]) ?? null;
    response.model ??= asName(facts["model"]) ?? null;
    for (const choice of asObjects(facts["choices"])) readChoice(choice, response);
    readUsage(asObject(facts["usage"]), response);
  },
};

function readChoice(choice: Facts, response: OpenResponse): void {
  const open = response.choice(asCount(choice["index"]) ?? 0);
  if (open === undefined) return;
  open.text.add(asText(choice["text"]));
  open.finishReason = asName(choice["finish_reason"]) ?? open.finishReason;
  const delta = asObject(choice["delta"]) ?? asObject(choice["message"]);
  if (delta === undefined) return;
  readContent(delta["content"], open);
  open.reasoning.add(asText(delta["reasoning_content"]) ?? asText(delta["reasoning"]));
  open.refusal.add(asText(delta["refusal"]));
  const calls = asObjects(delta["tool_calls"]);
  for (const [position, call] of calls.entries()) readToolCall(call, position, open);
  const single = asObject(delta["function_call"]);
  if (single !== undefined) readToolCall({ function: single }, 0, open);
}

/** Mostly a text; some send a list of parts, of which one kind is what the model thinks. */
function readContent(content: unknown, open: OpenChoice): void {
  open.text.add(asText(content));
  for (const part of asObjects(content)) {
    open.text.add(asText(part["text"]));
    for (const thought of asObjects(part["thinking"])) open.reasoning.add(asText(thought["text"]));
    open.reasoning.add(asText(part["thinking"]));
  }
}

function readToolCall(call: Facts, position: number, open: OpenChoice): void {
  const known = open.toolCall(asCount(call["index"]) ?? position);
  const called = asObject(call["function"]) ?? asObject(call["custom"]);
  if (known === undefined) return;
  known.id ??= asName(call["id"]) ?? null;
  if (known.name === "") known.name = asText(called?.["name"]) ?? "";
  known.arguments.add(asText(called?.["arguments"]) ?? asText(called?.["input"]));
}

function readUsage(usage: Facts | undefined, response: OpenResponse): void {
  if (usage === undefined) return;
  response.count({
    inputTokens: asCount(usage["prompt_tokens"]),
    outputTokens: asCount(usage["completion_tokens"]),
    totalTokens: asCount(usage["total_tokens"]),
    cachedInputTokens: asCount(asObject(usage["prompt_tokens_details"])?.["cached_tokens"]),
    reasoningTokens: asCount(asObject(usage["completion_tokens_details"])?.["reasoning_tokens"]),
  });
}
