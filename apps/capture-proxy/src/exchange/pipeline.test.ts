import assert from "node:assert/strict";
import { test } from "node:test";
import type { Exchange } from "./exchange.ts";
import { CONTINUE } from "./phases.ts";
import type { Interceptor, Verdict } from "./phases.ts";
import { Pipeline } from "./pipeline.ts";

const exchange = {} as Exchange;
const respond: Verdict = { kind: "respond", response: { status: 403, fields: [], body: Buffer.alloc(0) } };

function pipeline(interceptors: Interceptor[], faults: string[] = [], failClosed: string[] = []): Pipeline {
  return new Pipeline(interceptors, [], new Set(failClosed), (slice, phase) => faults.push(`${slice} ${phase}`));
}

test("an empty phase continues without a promise", () => {
  assert.equal(pipeline([]).requestHead(exchange), CONTINUE);
});

test("the first verdict that is not continue ends the phase", () => {
  const seen: string[] = [];
  const step = (name: string, verdict: Verdict): Interceptor => ({
    name: name as "blocklist",
    onRequestHead: () => {
      seen.push(name);
      return verdict;
    },
  });
  assert.equal(pipeline([step("a", CONTINUE), step("b", respond), step("c", CONTINUE)]).requestHead(exchange), respond);
  assert.deepEqual(seen, ["a", "b"]);
});

test("asynchronous interceptors keep the order", async () => {
  const seen: string[] = [];
  const step = (name: string, slow: boolean): Interceptor => ({
    name: name as "blocklist",
    onResponseHead: () => {
      seen.push(name);
      return slow ? Promise.resolve(CONTINUE) : CONTINUE;
    },
  });
  const verdict = await pipeline([step("a", true), step("b", false), step("c", true)]).responseHead(exchange);
  assert.equal(verdict, CONTINUE);
  assert.deepEqual(seen, ["a", "b", "c"]);
});

for (const [how, fail] of [
  [
    "throws",
    () => {
      throw new Error("defect");
    },
  ],
  ["rejects", () => Promise.reject(new Error("defect"))],
] as const) {
  test(`an interceptor that ${how} is reported and skipped, unless it fails closed`, async () => {
    const faults: string[] = [];
    const step: Interceptor = { name: "blocklist", onRequestHead: fail };
    assert.equal((await pipeline([step], faults).requestHead(exchange)).kind, "continue");
    assert.equal((await pipeline([step], faults, ["blocklist"]).requestHead(exchange)).kind, "abort");
    assert.deepEqual(faults, ["blocklist onRequestHead", "blocklist onRequestHead"]);
  });
}

test("an observer that throws does not affect the others", () => {
  const faults: string[] = [];
  let notified = 0;
  const observers = [
    {
      name: "metrics" as const,
      onFinished: () => {
        throw new Error("defect");
      },
      onClosing: () => {
        throw new Error("defect");
      },
    },
    {
      name: "traffic" as const,
      onFinished: () => {
        notified += 1;
      },
      onClosing: () => {
        notified += 1;
      },
    },
  ];
  const pipe = new Pipeline([], observers, new Set(), (slice) => faults.push(slice));
  pipe.finished(exchange);
  assert.equal(notified, 1);
  assert.deepEqual(faults, ["metrics"]);
  pipe.closing(exchange.client, { host: "a.test", port: 443 });
  assert.deepEqual([notified, faults.length], [2, 2]);
});
