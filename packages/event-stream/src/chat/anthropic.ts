import {
  asCount,
  asName,
  asObject,
  asText,
  type ChatReader,
  type Facts,
  type OpenChoice,
  type OpenResponse,
} from "./chat-response.ts";

const TYPES = new Set(["message_start", "content_block_start", "content_block_delta", "message_delta"]);

/** Messages as Anthropic streams them: blocks of text, thought and tool calls, each in pieces. */
export const anthropic: ChatReader = {
  format: "anthropic",
  recognises: ({ facts }) => TYPES.has(asText(facts?.["type"]) ?? ""),

  read({ facts }, response) {
    const choice = response.choice(0);
    if (facts === undefined || choice === undefined) return;
    switch (facts["type"]) {
      case "message_start":
        return readStart(asObject(facts["message"]), response);
      case "content_block_start":
        return readBlock(facts, choice);
      case "content_block_delta":
        return readPiece(facts, choice);
      case "message_delta":
        choice.finishReason = asName(asObject(facts["delta"])?.["stop_reason"]) ?? choice.finishReason;
        return readUsage(asObject(facts["usage"]), response);
      case "message_stop":
        response.isComplete = true;
    }
  },
};

function readStart(message: Facts | undefined, response: OpenResponse): void {
  if (message === undefined) return;
  response.id ??= asName(message["id"]) ?? null;
  response.model ??= asName(message["model"]) ?? null;
  readUsage(asObject(message["usage"]), response);
}

function readBlock(facts: Facts, choice: OpenChoice): void {
  const block = asObject(facts["content_block"]);
  if (block === undefined) return;
  choice.text.add(asText(block["text"]));
  choice.reasoning.add(asText(block["thinking"]));
  const type = asText(block["type"]) ?? "";
  if (!type.endsWith("tool_use")) return;
  const call = choice.toolCall(asCount(facts["index"]) ?? 0);
  if (call === undefined) return;
  call.id ??= asName(block["id"]) ?? null;
  if (call.name === "") call.name = asText(block["name"]) ?? "";
  const input = asObject(block["input"]);
  if (input !== undefined && Object.keys(input).length > 0) call.arguments.add(JSON.stringify(input));
}

function readPiece(facts: Facts, choice: OpenChoice): void {
  const delta = asObject(facts["delta"]);
  choice.text.add(asText(delta?.["text"]));
  choice.reasoning.add(asText(delta?.["thinking"]));
  const json = asText(delta?.["partial_json"]);
  if (json !== undefined) choice.toolCall(asCount(facts["index"]) ?? 0)?.arguments.add(json);
}

/** Counts of output are of all so far, so the last one stands; those of cached input are beside the rest of the input. */
function readUsage(usage: Facts | undefined, response: OpenResponse): void {
  if (usage === undefined) return;
  response.count({
    inputTokens: asCount(usage["input_tokens"]),
    outputTokens: asCount(usage["output_tokens"]),
    cachedInputTokens: asCount(usage["cache_read_input_tokens"]),
  });
}
