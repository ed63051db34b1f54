import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ChatAssembler } from "./chat-assembler.ts";
import type { ChatChoice, ChatEvent, ChatResponse } from "./chat-response.ts";

function typeNamedBy(payload: unknown): string {
  const type: unknown = typeof payload === "object" && payload !== null ? Reflect.get(payload, "type") : undefined;
  return typeof type === "string" ? type : "message";
}

/** Events of these payloads; their type is the one that the payload names, as the providers do it. */
const events = (...payloads: readonly unknown[]): ChatEvent[] =>
  payloads.map((payload) => ({
    event: typeNamedBy(payload),
    data: typeof payload === "string" ? payload : JSON.stringify(payload),
  }));

function assembled(list: readonly ChatEvent[]): ChatResponse | undefined {
  const assembler = new ChatAssembler();
  for (const event of list) assembler.add(event);
  return assembler.response();
}

const choice = (change: Partial<ChatChoice>): ChatChoice => ({
  index: 0,
  text: "",
  reasoning: "",
  refusal: "",
  toolCalls: [],
  finishReason: null,
  ...change,
});

const chunk = (delta: object, finish: string | null = null, index = 0) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  model: "gpt-x",
  choices: [{ index, delta, finish_reason: finish }],
});

const usage = (change: Partial<NonNullable<ChatResponse["usage"]>>) => ({
  inputTokens: null,
  outputTokens: null,
  totalTokens: null,
  cachedInputTokens: null,
  reasoningTokens: null,
  ...change,
});

const cases: readonly [name: string, list: readonly ChatEvent[], expected: Partial<ChatResponse>][] = [
  [
    "OpenAI chat: text, finish reason and usage of the last chunk",
    events(
      chunk({ role: "assistant", content: "" }),
      chunk({ content: "Hel" }),
      chunk({ content: "lo 🙂" }),
      chunk({}, "stop"),
      {
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        choices: [],
        usage: {
          prompt_tokens: 5,
          completion_tokens: 2,
          total_tokens: 7,
          prompt_tokens_details: { cached_tokens: 1 },
          completion_tokens_details: { reasoning_tokens: 0 },
        },
      },
      "[DONE]",
    ),
    {
      format: "openai-chat",
      id: "chatcmpl-1",
      model: "gpt-x",
      choices: [choice({ text: "Hello 🙂", finishReason: "stop" })],
      usage: usage({ inputTokens: 5, outputTokens: 2, totalTokens: 7, cachedInputTokens: 1, reasoningTokens: 0 }),
      isComplete: true,
      error: null,
    },
  ],
  [
    "OpenAI chat: two tool calls whose arguments come in turns",
    events(
      chunk({ tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "look", arguments: "" } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: '{"q":' } }] }),
      chunk({ tool_calls: [{ index: 1, id: "b", function: { name: "find", arguments: "{" } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: '"x"}' } }] }),
      chunk({ tool_calls: [{ index: 1, function: { arguments: "}" } }] }, "tool_calls"),
    ),
    {
      choices: [
        choice({
          toolCalls: [
            { id: "a", name: "look", arguments: '{"q":"x"}' },
            { id: "b", name: "find", arguments: "{}" },
          ],
          finishReason: "tool_calls",
        }),
      ],
      isComplete: false,
      usage: null,
    },
  ],
  [
    "OpenAI chat: several choices, a refusal and the older function call",
    events(
      chunk({ content: "b" }, null, 1),
      chunk({ content: "a" }, null, 0),
      chunk({ refusal: "no" }, "stop", 1),
      chunk({ function_call: { name: "f", arguments: "{" } }),
      chunk({ function_call: { arguments: "}" } }, "function_call"),
    ),
    {
      choices: [
        choice({ text: "a", toolCalls: [{ id: null, name: "f", arguments: "{}" }], finishReason: "function_call" }),
        choice({ index: 1, text: "b", refusal: "no", finishReason: "stop" }),
      ],
    },
  ],
  [
    "OpenAI chat: thoughts as other providers send them",
    events(
      chunk({ reasoning_content: "think" }),
      chunk({ reasoning: "ing" }),
      chunk({
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "." }] },
          { type: "text", text: "42" },
        ],
      }),
    ),
    { choices: [choice({ reasoning: "thinking.", text: "42" })] },
  ],
  [
    "older completions: the text of each choice",
    events(
      { object: "text_completion", id: "c", choices: [{ index: 0, text: "a", finish_reason: null }] },
      { object: "text_completion", id: "c", choices: [{ index: 0, text: "b", finish_reason: "length" }] },
    ),
    { format: "openai-chat", choices: [choice({ text: "ab", finishReason: "length" })] },
  ],
  [
    "OpenAI chat: an error in the middle",
    events(chunk({ content: "a" }), { error: { message: "overloaded", type: "server_error" } }),
    { choices: [choice({ text: "a" })], error: "overloaded" },
  ],
  [
    "OpenAI responses: thoughts, a call and text, by their items",
    events(
      { type: "response.created", response: { id: "resp_1", model: "gpt-y", status: "in_progress" } },
      { type: "response.reasoning_summary_part.added", output_index: 0, summary_index: 0 },
      { type: "response.reasoning_summary_text.delta", output_index: 0, delta: "First." },
      { type: "response.reasoning_summary_part.added", output_index: 0, summary_index: 1 },
      { type: "response.reasoning_summary_text.delta", output_index: 0, delta: "Second." },
      {
        type: "response.output_item.added",
        output_index: 1,
        item: { type: "function_call", id: "fc_1", call_id: "call_1", name: "look", arguments: "" },
      },
      { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 1, delta: '{"a"' },
      { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 1, delta: ":1}" },
      { type: "response.function_call_arguments.done", item_id: "fc_1", output_index: 1, arguments: '{"a":1}' },
      { type: "response.output_text.delta", output_index: 2, delta: "It is " },
      { type: "response.output_text.delta", output_index: 2, delta: "1." },
      { type: "response.output_text.done", output_index: 2, text: "It is 1." },
      { type: "response.something_new", delta: "?" },
      {
        type: "response.completed",
        response: {
          id: "resp_1",
          status: "completed",
          output: [{ content: [{ text: "It is 1." }] }],
          usage: {
            input_tokens: 10,
            output_tokens: 20,
            total_tokens: 30,
            input_tokens_details: { cached_tokens: 4 },
            output_tokens_details: { reasoning_tokens: 8 },
          },
        },
      },
    ),
    {
      format: "openai-responses",
      id: "resp_1",
      model: "gpt-y",
      choices: [
        choice({
          text: "It is 1.",
          reasoning: "First.\n\nSecond.",
          toolCalls: [{ id: "call_1", name: "look", arguments: '{"a":1}' }],
          finishReason: "completed",
        }),
      ],
      usage: usage({
        inputTokens: 10,
        outputTokens: 20,
        totalTokens: 30,
        cachedInputTokens: 4,
        reasoningTokens: 8,
      }),
      isComplete: true,
    },
  ],
  [
    "OpenAI responses: cut short, and failed",
    events(
      { type: "response.created", response: { id: "r", status: "in_progress" } },
      {
        type: "response.failed",
        response: {
          id: "r",
          status: "incomplete",
          incomplete_details: { reason: "max_output_tokens" },
          error: { message: "too long" },
        },
      },
    ),
    { choices: [choice({ finishReason: "max_output_tokens" })], error: "too long", isComplete: true },
  ],
  [
    "Anthropic: thoughts, text and a call in blocks, usage that grows",
    events(
      {
        type: "message_start",
        message: {
          id: "msg_1",
          model: "model-x",
          role: "assistant",
          content: [],
          usage: { input_tokens: 25, output_tokens: 1, cache_read_input_tokens: 3 },
        },
      },
      { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
      { type: "ping" },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Hm." } },
      { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "xyz" } },
      { type: "content_block_stop", index: 0 },
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Let me " } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "look." } },
      {
        type: "content_block_start",
        index: 2,
        content_block: { type: "tool_use", id: "toolu_1", name: "look", input: {} },
      },
      { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: "" } },
      { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: '{"city": "Be' } },
      { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: 'rn"}' } },
      { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 89 } },
      { type: "message_stop" },
    ),
    {
      format: "anthropic",
      id: "msg_1",
      model: "model-x",
      choices: [
        choice({
          text: "Let me look.",
          reasoning: "Hm.",
          toolCalls: [{ id: "toolu_1", name: "look", arguments: '{"city": "Bern"}' }],
          finishReason: "tool_use",
        }),
      ],
      usage: usage({ inputTokens: 25, outputTokens: 89, cachedInputTokens: 3 }),
      isComplete: true,
    },
  ],
  [
    "Anthropic: an error instead of the end",
    events(
      { type: "message_start", message: { id: "m", usage: {} } },
      { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
    ),
    { error: "Overloaded", isComplete: false, usage: null },
  ],
  [
    "Google: parts of several events, thoughts, whole calls",
    events(
      {
        candidates: [{ content: { role: "model", parts: [{ text: "Plan", thought: true }, { text: "It " }] } }],
        modelVersion: "gemini-x",
        responseId: "r1",
        usageMetadata: { promptTokenCount: 4, totalTokenCount: 4 },
      },
      { candidates: [{ content: { parts: [{ text: "is." }, { functionCall: { name: "look", args: { a: [1] } } }] } }] },
      {
        candidates: [
          { content: { parts: [{ functionCall: { id: "2", name: "find" } }] }, finishReason: "STOP", index: 0 },
        ],
        usageMetadata: {
          promptTokenCount: 4,
          candidatesTokenCount: 6,
          thoughtsTokenCount: 2,
          totalTokenCount: 12,
          cachedContentTokenCount: 1,
        },
      },
    ),
    {
      format: "google",
      id: "r1",
      model: "gemini-x",
      choices: [
        choice({
          text: "It is.",
          reasoning: "Plan",
          toolCalls: [
            { id: null, name: "look", arguments: '{"a":[1]}' },
            { id: "2", name: "find", arguments: "{}" },
          ],
          finishReason: "STOP",
        }),
      ],
      usage: usage({
        inputTokens: 4,
        outputTokens: 6,
        totalTokens: 12,
        cachedInputTokens: 1,
        reasoningTokens: 2,
      }),
      isComplete: true,
    },
  ],
  [
    "Google: a blocked prompt",
    events({ promptFeedback: { blockReason: "SAFETY" }, usageMetadata: { promptTokenCount: 3 } }),
    { choices: [], error: "The prompt was blocked: SAFETY" },
  ],
  [
    "Ollama: lines until it is done",
    events(
      { model: "llama", created_at: "…", message: { role: "assistant", content: "", thinking: "Hm" }, done: false },
      { model: "llama", message: { role: "assistant", content: "Hi" }, done: false },
      {
        model: "llama",
        message: { content: "", tool_calls: [{ function: { name: "f", arguments: { a: 1 } } }] },
        done: false,
      },
      {
        model: "llama",
        message: { content: "!" },
        done: true,
        done_reason: "stop",
        prompt_eval_count: 3,
        eval_count: 9,
      },
    ),
    {
      format: "ollama",
      model: "llama",
      choices: [
        choice({
          text: "Hi!",
          reasoning: "Hm",
          toolCalls: [{ id: null, name: "f", arguments: '{"a":1}' }],
          finishReason: "stop",
        }),
      ],
      usage: usage({ inputTokens: 3, outputTokens: 9 }),
      isComplete: true,
    },
  ],
];

for (const [name, list, expected] of cases) {
  test(name, () => {
    const response = assembled(list);
    assert.ok(response !== undefined);
    for (const [key, value] of Object.entries(expected)) assert.deepEqual(Reflect.get(response, key), value, key);
    assert.equal(response.isCut, false);
  });

  test(`${name}: unknown events and broken data between change nothing`, () => {
    const odd = events(
      "",
      "no json",
      "[]",
      "null",
      '{"type":"response',
      { type: "unheard.of", delta: "x" },
      { choices: 7 },
    );
    const mixed = list.flatMap((event, index) => [event, odd[index % odd.length] ?? event]);
    assert.deepEqual(assembled(mixed), assembled(list));
  });
}

test("what is no chat is not taken for one, and given up soon", () => {
  const assembler = new ChatAssembler();
  for (let price = 0; price < 40; price += 1) {
    assert.equal(assembler.isHopeless, price >= 32);
    for (const event of events({ symbol: "X", price, choices: [1] })) assembler.add(event);
  }
  assert.equal(assembler.response(), undefined);
});

test("an endless stream is kept within limits and says so", () => {
  const long = "x".repeat(100_000);
  const payloads = [
    ...Array.from({ length: 100 }, (_, index) => chunk({ content: long }, null, index % 2)),
    ...Array.from({ length: 2000 }, (_, index) => chunk({ tool_calls: [{ index }] })),
    ...Array.from({ length: 300 }, (_, index) => chunk({ content: "" }, null, index)),
  ];
  const response = assembled(events(...payloads));
  assert.ok(response?.isCut);
  assert.equal(response.choices.length, 128);
  assert.equal(response.choices[0]?.toolCalls.length, 1024);
  const kept = response.choices.reduce((sum, { text }) => sum + text.length, 0);
  assert.ok(kept <= 8_388_608 && kept > 8_000_000);
});

const NAMES =
  "type object choices delta index content tool_calls function name arguments message usage response item output_index content_block candidates parts done error __proto__ constructor prompt_tokens finish_reason functionCall output model text".split(
    " ",
  );

const hostile = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom<unknown>(null, true, -1, 1e99, 0.5, "", "x", "__proto__", "function_call", "stop"),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...NAMES), tie("value"), { maxKeys: 6 }),
  ),
}));

test("no event makes it throw, and what it gives is text", () => {
  const starts = [
    chunk({}),
    { type: "response.created" },
    { type: "message_start" },
    { candidates: [] },
    { model: "m", message: {}, done: false },
  ];
  fc.assert(
    fc.property(fc.constantFrom(...starts), fc.array(hostile.value, { maxLength: 6 }), (start, payloads) => {
      const types = ["response.output_item.added", "content_block_start", "content_block_delta", "message_delta"];
      const typed = payloads.map((payload, index) =>
        typeof payload === "object" && payload !== null ? { type: types[index % types.length], ...payload } : payload,
      );
      const response = assembled(events(start, ...typed, ...payloads));
      assert.ok(response !== undefined);
      for (const { text, toolCalls } of response.choices) {
        assert.equal(typeof text, "string");
        for (const call of toolCalls) assert.equal(typeof call.name + typeof call.arguments, "stringstring");
      }
      assert.equal(Reflect.get({}, "type"), undefined);
    }),
  );
});
