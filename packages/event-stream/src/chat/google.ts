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

/** Contents as Google's generateContent streams them: each event is an answer of its own with the next parts. */
export const google: ChatReader = {
  format: "google",
  recognises: ({ facts }) =>
    facts !== undefined &&
    (Array.isArray(facts["candidates"]) || "usageMetadata" in facts || "promptFeedback" in facts),

  read({ facts }, response) {
    if (facts === undefined) return;
    response.id ??= asName(facts["responseId"]) ?? null;
    response.model ??= asName(facts["modelVersion"]) ?? null;
    for (const candidate of asObjects(facts["candidates"])) readCandidate(candidate, response);
    const blocked = asName(asObject(facts["promptFeedback"])?.["blockReason"]);
    if (blocked !== undefined) response.error ??= `The prompt was blocked: ${blocked}`;
    readUsage(asObject(facts["usageMetadata"]), response);
  },
};

function readCandidate(candidate: Facts, response: OpenResponse): void {
  const choice = response.choice(asCount(candidate["index"]) ?? 0);
  if (choice === undefined) return;
  for (const part of asObjects(asObject(candidate["content"])?.["parts"])) readPart(part, choice);
  const reason = asName(candidate["finishReason"]);
  if (reason === undefined) return;
  choice.finishReason = reason;
  response.isComplete = true;
}

function readPart(part: Facts, choice: OpenChoice): void {
  const text = asText(part["text"]);
  if (part["thought"] === true) choice.reasoning.add(text);
  else choice.text.add(text);
  const called = asObject(part["functionCall"]);
  if (called === undefined) return;
  // Calls come whole, so each is one more.
  const call = choice.toolCall(choice.toolCalls.size);
  if (call === undefined) return;
  call.id = asName(called["id"]) ?? null;
  call.name = asText(called["name"]) ?? "";
  call.arguments.add(JSON.stringify(asObject(called["args"]) ?? {}));
}

function readUsage(usage: Facts | undefined, response: OpenResponse): void {
  if (usage === undefined) return;
  response.count({
    inputTokens: asCount(usage["promptTokenCount"]),
    outputTokens: asCount(usage["candidatesTokenCount"]),
    totalTokens: asCount(usage["totalTokenCount"]),
    cachedInputTokens: asCount(usage["cachedContentTokenCount"]),
    reasoningTokens: asCount(usage["thoughtsTokenCount"]),
  });
}
