import assert from "node:assert/strict";
import { test } from "node:test";
import type { DiffSide, SideBody } from "@headworks/entry-diff";
import { FakeClock } from "@headworks/testkit";
import { compareEntriesNow, compareInWorker, type Comparison } from "./compare-in-worker.ts";

function comparison(): Comparison {
  const body = (last: string): SideBody => {
    const text = JSON.stringify({ numbers: Array.from({ length: 40_000 }, (_, at) => at), last });
    return { kind: "text", text, sizeBytes: text.length, mayBeJson: true, sha256: null };
  };
  const side = (last: string): DiffSide => ({
    id: null,
    request: { method: "GET", url: "http://a.test/", headers_list: [] },
    response: { status_code: 200, headers_list: [] },
    requestBody: { kind: "none" },
    responseBody: body(last),
    failureCode: null,
    durationMs: null,
    timings: {
      blocked: null,
      dns: null,
      connect: null,
      tls: null,
      send: null,
      wait: null,
      receive: null,
    },
  });
  return { left: side("one"), right: side("two"), options: {} };
}

test("large bodies are compared in a thread with the same result", async () => {
  const given = comparison();
  const diff = await compareInWorker(new FakeClock(), given);
  assert.equal(diff.response_body.kind, "json");
  assert.deepEqual(diff, JSON.parse(JSON.stringify(compareEntriesNow(given))));
});

test("bodies that take too long are compared by bytes", async () => {
  const clock = new FakeClock();
  const [diff] = await Promise.all([compareInWorker(clock, comparison()), clock.advance(60_000)]);
  assert.equal(diff.response_body.kind, "binary");
  assert.equal(clock.pendingTimers, 0);
});
