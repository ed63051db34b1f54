import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import type { FinishedRequest } from "#request/context.ts";
import { createAccessLog } from "./access-log.slice.ts";

const finished = (status: number): FinishedRequest =>
  ({
    request: {
      requestId: "r-1",
      method: "GET",
      path: "/a",
      query: "token=secret",
      fields: ["Authorization", "Bearer secret"],
      clientAddress: "192.0.2.1",
      upstream: { upstream: "u", endpoint: "h:1", attempts: 2, failure: undefined },
    },
    status,
    durationMs: 1.23456,
    sentBytes: 10,
    isComplete: true,
  }) as unknown as FinishedRequest;

function written(sample: number, random: number, statuses: readonly number[]): Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) });
  const slice = createAccessLog({ log, sample, random: () => random });
  for (const status of statuses) slice.observer?.onFinished(finished(status));
  return lines;
}

test("an access line names the request, never its query or a field", () => {
  const [line] = written(1, 0, [200]);
  assert.deepEqual(
    [line?.["target"], line?.["msg"], line?.["path"], line?.["route"], line?.["consumer"], line?.["duration_ms"]],
    ["gateway::access", "access", "/a", "unrouted", "anonymous", 1.235],
  );
  assert.doesNotMatch(JSON.stringify(line), /secret/);
});

const TRACE = "0af7651916cd43dd8448eb211c80319c";
for (const [value, traceId] of [
  [`00-${TRACE}-b7ad6b7169203331-00`, TRACE],
  [`01-${TRACE}-b7ad6b7169203331-01-more`, TRACE],
  [`ff-${TRACE}-b7ad6b7169203331-01`, undefined],
  [`00-${"0".repeat(32)}-b7ad6b7169203331-01`, undefined],
  ["anything else", undefined],
] as const) {
  test(`the trace of an access line with traceparent ${value}`, () => {
    const lines: Record<string, unknown>[] = [];
    const log = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) });
    const one = finished(200);
    Object.assign(one.request, { fields: ["TraceParent", value] });
    createAccessLog({ log, sample: 1, random: () => 0 }).observer?.onFinished(one);
    assert.equal(lines[0]?.["trace_id"], traceId);
  });
}

test("a sample leaves lines out, but never those of status 500 and above", () => {
  assert.equal(written(0.1, 0.05, [200]).length, 1);
  assert.equal(written(0.1, 0.5, [200]).length, 0);
  assert.equal(written(0, 0.5, [200, 404, 502]).length, 1);
});
