import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ConfigDocument } from "@headworks/gateway-contract";
import { partOf, divideLimits } from "./data-plane.ts";

test("the parts of a limit add up to it, and differ by at most one", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 256 }), fc.integer({ min: 0, max: 1e9 }), (workers, more) => {
      const total = workers + more;
      const parts = Array.from({ length: workers }, (_, worker) => partOf(total, { worker, workers }));
      assert.equal(
        parts.reduce((sum, part) => sum + part, 0),
        total,
      );
      assert.ok(Math.max(...parts) - Math.min(...parts) <= 1);
    }),
  );
});

test("a limit below the number of workers leaves one to each, and 0 stays 0", () => {
  const of = (total: number): number[] => [0, 1, 2].map((worker) => partOf(total, { worker, workers: 3 }));
  assert.deepEqual(of(2), [1, 1, 1]);
  assert.deepEqual(of(0), [0, 0, 0]);
});

test("requests, their queue, and connections to endpoints are divided; nothing else is", () => {
  const document = {
    gateway: { name: "edge", max_concurrent_requests: 5, admission_queue: { enabled: true, max_queue_size: 3 } },
    upstreams: [{ name: "a", connection_cap: 9, stalled_connection_cap: 7, max_pending: 0 }, { name: "b" }],
    routes: [{ name: "r" }],
  } as unknown as ConfigDocument;
  const before = structuredClone(document);
  assert.deepEqual(divideLimits(document, { worker: 1, workers: 2 }), {
    gateway: {
      name: "edge",
      max_buffered_bytes: 67_108_864,
      max_concurrent_requests: 2,
      admission_queue: { enabled: true, max_queue_size: 1 },
    },
    upstreams: [
      { name: "a", connection_cap: 4, stalled_connection_cap: 3, max_pending: 0 },
      { name: "b", connection_cap: 32, max_pending: 512 },
    ],
    routes: [{ name: "r" }],
  });
  assert.deepEqual(document, before);
});

test("a document without limits only gets its part of the default ones", () => {
  const document = { gateway: {}, upstreams: [], routes: [] } as unknown as ConfigDocument;
  assert.deepEqual(divideLimits(document, { worker: 0, workers: 2 }), {
    ...document,
    gateway: { max_buffered_bytes: 67_108_864 },
  });
});
