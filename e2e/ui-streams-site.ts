import type { RequestListener, ServerResponse } from "node:http";

const chunk = (delta: object, more: object = {}) =>
  `data: ${JSON.stringify({
    id: "chatcmpl-42",
    object: "chat.completion.chunk",
    model: "model-x",
    choices: [{ index: 0, delta, finish_reason: null, ...more }],
  })}\n\n`;

/** A streamed chat completion: reasoning, text, a tool call, and token usage. */
const CHAT = [
  ": processing\n\n",
  chunk({ role: "assistant", reasoning_content: "The user wants the weather, so a tool has to be asked." }),
  chunk({ content: "Let me look " }),
  chunk({ content: "that up for you." }),
  chunk({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "weather", arguments: "" } }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '"Bern"}' } }] }),
  chunk({}, { finish_reason: "tool_calls" }),
  `data: ${JSON.stringify({
    id: "chatcmpl-42",
    object: "chat.completion.chunk",
    choices: [],
    usage: { prompt_tokens: 31, completion_tokens: 17, total_tokens: 48 },
  })}\n\n`,
  "data: [DONE]\n\n",
].join("");

/** An origin whose `/live` streams are written by the test; its other paths respond by themselves. */
export function streamSite(): { readonly handler: RequestListener; readonly live: ServerResponse[] } {
  const live: ServerResponse[] = [];
  const handler: RequestListener = (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://origin");
    request.resume();
    switch (pathname) {
      case "/live":
        response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
        response.flushHeaders();
        live.push(response);
        return;
      case "/v1/chat/completions":
        response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" }).end(CHAT);
        return;
      case "/many": {
        const count = Number(searchParams.get("count"));
        response.writeHead(200, { "Content-Type": "text/event-stream" });
        response.end(Array.from({ length: count }, (_, index) => `data: event ${index + 1}\n\n`).join(""));
        return;
      }
      case "/lines":
        response.writeHead(200, { "Content-Type": "application/x-ndjson" });
        response.end('{"level":"info","text":"started"}\n{"level":"warn","text":"slow"}\n');
        return;
      default:
        response.writeHead(200, { "Content-Type": "text/plain" }).end("plain");
    }
  };
  return { handler, live };
}
