import assert from "node:assert/strict";
import { test } from "node:test";
import { sampleExchange } from "#storage/read/sample-exchange.ts";
import type { SampleOptions } from "#storage/read/sample-exchange.ts";
import { streamForm } from "./stream-form.ts";

const answered = (type: string | undefined, change: SampleOptions & { coding?: string } = {}) => {
  const { coding, ...options } = change;
  const fields = [
    ...(type === undefined ? [] : ["Content-Type", type]),
    ...(coding === undefined ? [] : ["Content-Encoding", coding]),
  ];
  return streamForm(sampleExchange({ responseFields: fields, ...options }));
};

const cases: readonly [
  type: string | undefined,
  form: string | undefined,
  change?: SampleOptions & { coding?: string },
][] = [
  ["text/event-stream", "sse"],
  ["Text/Event-Stream; charset=utf-8", "sse"],
  [" text/event-stream ;charset=utf-8", "sse"],
  ["text/event-stream", "sse", { status: 500 }],
  ["text/event-stream", "sse", { method: "POST", path: "/v1/chat/completions" }],
  ["text/event-stream", "sse", { coding: "gzip" }],
  ["text/event-stream", "sse", { coding: "GZIP" }],
  ["text/event-stream", undefined, { coding: "gzip, br" }],
  ["text/event-stream", "sse", { coding: "identity" }],
  ["text/event-stream", undefined, { coding: "dcz" }],
  ["text/event-stream", undefined, { method: "HEAD" }],
  ["text/event-stream", undefined, { status: 204 }],
  ["text/event-stream", undefined, { status: 304 }],
  ["text/event-stream", undefined, { state: { step: "forwarding" } }],
  ["text/event-streams", undefined],
  ["application/x-ndjson", "lines"],
  ["application/jsonl", "lines"],
  ["application/json-seq", "sequence"],
  ["application/stream+json;charset=UTF-8", "concatenated"],
  ["application/json", undefined],
  ["application/json; charset=UTF-8", "array", { path: "/v1beta/models/gemini:streamGenerateContent?key=1" }],
  ["text/html", undefined],
  ["", undefined],
  [undefined, undefined],
];

for (const [type, form, change] of cases) {
  test(`a response of ${JSON.stringify(type)} ${JSON.stringify(change ?? {})} is read as ${form ?? "no stream"}`, () => {
    const found = answered(type, change);
    assert.equal(found?.kind === "json" ? found.form : found?.kind, form);
  });
}
