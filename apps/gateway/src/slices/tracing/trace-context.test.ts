import assert from "node:assert/strict";
import { test } from "node:test";
import { randomId, setTraceParent, traceParent } from "./trace-context.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

const good: [name: string, fields: string[], isSampled: boolean, state: string][] = [
  ["sampled", ["traceparent", `00-${TRACE}-${SPAN}-01`], true, ""],
  ["not sampled", ["traceparent", `00-${TRACE}-${SPAN}-00`], false, ""],
  ["other flags", ["TraceParent", `00-${TRACE}-${SPAN}-03`], true, ""],
  ["only other flags", ["traceparent", `00-${TRACE}-${SPAN}-02`], false, ""],
  ["a later version with more behind", ["traceparent", `cc-${TRACE}-${SPAN}-01-what-comes`], true, ""],
  [
    "state in two fields",
    ["tracestate", "a=1", "traceparent", `00-${TRACE}-${SPAN}-01`, "tracestate", "b=2"],
    true,
    "a=1,b=2",
  ],
  ["too much state", ["traceparent", `00-${TRACE}-${SPAN}-01`, "tracestate", `a=${"x".repeat(512)}`], true, ""],
];
for (const [name, fields, isSampled, state] of good) {
  test(`traceparent: ${name}`, () => {
    assert.deepEqual(traceParent(fields), { traceId: TRACE, spanId: SPAN, isSampled, state });
  });
}

const bad: [name: string, ...values: string[]][] = [
  ["none"],
  ["two of them", `00-${TRACE}-${SPAN}-01`, `00-${TRACE}-${SPAN}-01`],
  ["nothing in it", ""],
  ["upper case", `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ["no trace", `00-${"0".repeat(32)}-${SPAN}-01`],
  ["no span", `00-${TRACE}-${"0".repeat(16)}-01`],
  ["the forbidden version", `ff-${TRACE}-${SPAN}-01`],
  ["version 00 with more behind", `00-${TRACE}-${SPAN}-01-x`],
  ["too short", `00-${TRACE.slice(1)}-${SPAN}-01`],
  ["too long", `00-${TRACE}0-${SPAN}-01`],
  ["no flags", `00-${TRACE}-${SPAN}`],
  ["very long", "0".repeat(60_000)],
];
for (const [name, ...values] of bad) {
  test(`no traceparent: ${name}`, () => {
    assert.equal(traceParent(values.flatMap((value) => ["traceparent", value])), undefined);
  });
}

test("a parent replaces existing ones together with the state of another trace", () => {
  const fields = ["Traceparent", "x", "A", "1", "tracestate", "a=1", "traceparent", "y"];
  const kept = [...fields];
  setTraceParent(kept, TRACE, SPAN, true);
  assert.deepEqual(kept, ["A", "1", "tracestate", "a=1", "traceparent", `00-${TRACE}-${SPAN}-01`]);
  setTraceParent(fields, TRACE, SPAN, false);
  assert.deepEqual(fields, ["A", "1", "traceparent", `00-${TRACE}-${SPAN}-01`]);
});

test("ids are of their size, in lower case, and do not repeat, over more of them than are made at once", () => {
  const ids = new Set<string>();
  for (let at = 0; at < 2000; at += 1) {
    const [span, trace] = [randomId(8), randomId(16)];
    assert.match(span, /^[0-9a-f]{16}$/);
    assert.match(trace, /^[0-9a-f]{32}$/);
    ids.add(span).add(trace);
  }
  assert.equal(ids.size, 4000);
});
