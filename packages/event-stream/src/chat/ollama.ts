import { asCount, asName, asObject, asObjects, asText, type ChatReader } from "./chat-response.ts";

/** Chats and completions as Ollama streams them: one object a line, the last of which says that it is done. */
export const ollama: ChatReader = {
  format: "ollama",
  recognises: ({ facts }) =>
    typeof facts?.["done"] === "boolean" &&
    asText(facts["model"]) !== undefined &&
    (asObject(facts["message"]) !== undefined || asText(facts["response"]) !== undefined),

  read({ facts }, response) {
    const choice = response.choice(0);
    if (facts === undefined || choice === undefined) return;
    response.model ??= asName(facts["model"]) ?? null;
    const message = asObject(facts["message"]);
    choice.text.add(asText(message?.["content"]) ?? asText(facts["response"]));
    choice.reasoning.add(asText(message?.["thinking"]) ?? asText(facts["thinking"]));
    for (const { id, function: called } of asObjects(message?.["tool_calls"])) {
      const call = choice.toolCall(choice.toolCalls.size);
      if (call === undefined) break;
      call.id = asName(id) ?? null;
      call.name = asText(asObject(called)?.["name"]) ?? "";
      call.arguments.add(JSON.stringify(asObject(called)?.["arguments"] ?? {}));
    }
    if (facts["done"] === true) response.isComplete = true;
    choice.finishReason = asName(facts["done_reason"]) ?? choice.finishReason;
    response.count({
      inputTokens: asCount(facts["prompt_eval_count"]),
      outputTokens: asCount(facts["eval_count"]),
    });
  },
};
