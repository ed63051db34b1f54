import assert from "node:assert/strict";
import { test } from "node:test";
import { exportBody, type Span } from "./span.ts";

const span = (more: Partial<Span> = {}): Span => ({
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  parentId: undefined,
  state: "",
  name: "GET /",
  kind: "server",
  startMs: 1000.25,
  endMs: 1001.5,
  attributes: {},
  isError: false,
  ...more,
});

test("a span is written as the JSON mapping of OTLP says: ids in hex, 64-bit numbers as texts, enumerations as numbers", () => {
  const attributes = { text: "a", whole: 200, part: 0.5, yes: true, left: undefined };
  const source = { resource: { "service.name": "sluice" }, version: "1.2.3" };
  const child = span({ parentId: "00f067aa0ba902b7", state: "a=1", kind: "client", attributes, isError: true });
  // Nanoseconds since 1970 have 19 digits, of which a double keeps 16.
  const body = exportBody([span(), child], source, 1_763_000_000_000.125);
  assert.deepEqual(JSON.parse(body.toString()), {
    resourceSpans: [
      {
        resource: { attributes: [{ key: "service.name", value: { stringValue: "sluice" } }] },
        scopeSpans: [
          {
            scope: { name: "sluice", version: "1.2.3" },
            spans: [
              {
                traceId: "0af7651916cd43dd8448eb211c80319c",
                spanId: "b7ad6b7169203331",
                name: "GET /",
                kind: 2,
                startTimeUnixNano: "1763000001000375000",
                endTimeUnixNano: "1763000001001625000",
                attributes: [],
              },
              {
                traceId: "0af7651916cd43dd8448eb211c80319c",
                spanId: "b7ad6b7169203331",
                parentSpanId: "00f067aa0ba902b7",
                traceState: "a=1",
                name: "GET /",
                kind: 3,
                startTimeUnixNano: "1763000001000375000",
                endTimeUnixNano: "1763000001001625000",
                attributes: [
                  { key: "text", value: { stringValue: "a" } },
                  { key: "whole", value: { intValue: "200" } },
                  { key: "part", value: { doubleValue: 0.5 } },
                  { key: "yes", value: { boolValue: true } },
                ],
                status: { code: 2 },
              },
            ],
          },
        ],
      },
    ],
  });
});

test("what clients choose is cut, and a span never ends before it began", () => {
  const long = span({ name: "n".repeat(5000), attributes: { "url.path": "/".repeat(60_000) }, endMs: 0 });
  const text = exportBody([long], { resource: {}, version: "" }, 0).toString();
  assert.ok(text.length < 3000);
  const [, start] = /"startTimeUnixNano":"(\d+)"/.exec(text) ?? [];
  const [, end] = /"endTimeUnixNano":"(\d+)"/.exec(text) ?? [];
  assert.ok(start !== undefined && start === end);
});
