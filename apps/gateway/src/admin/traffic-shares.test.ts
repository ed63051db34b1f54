import assert from "node:assert/strict";
import { test } from "node:test";
import { affectedBy, allShares } from "./traffic-shares.ts";

const RECENT = {
  spanMs: 90_400,
  requests: [
    ["a", 1],
    ["b", 6],
    ["c", 2],
  ],
} as const;

test("routes come with their share of all requests, most first", () => {
  assert.deepEqual(allShares(RECENT), {
    span_seconds: 90,
    requests: 9,
    routes: [
      { name: "b", requests: 6, share: 0.6667 },
      { name: "c", requests: 2, share: 0.2222 },
      { name: "a", requests: 1, share: 0.1111 },
    ],
  });
});

test("a plan's routes keep their order; a new one has no requests, without a division by zero", () => {
  const plan = { changes: [], routes: ["new", "b"], consumers: ["k"], upstreams: ["u"], rebound: ["l"] };
  assert.deepEqual(affectedBy(plan, RECENT), {
    span_seconds: 90,
    requests: 9,
    consumers: ["k"],
    upstreams: ["u"],
    rebound_listeners: ["l"],
    routes: [
      { name: "new", requests: 0, share: 0 },
      { name: "b", requests: 6, share: 0.6667 },
    ],
  });
  assert.deepEqual(
    affectedBy(plan, { spanMs: 0, requests: [] }).routes.map(({ share }) => share),
    [0, 0],
  );
});
