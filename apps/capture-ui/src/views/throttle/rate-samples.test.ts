import assert from "node:assert/strict";
import { test } from "node:test";
import { addSample } from "./rate-samples.ts";

const reading = (atMs: number, download_bytes: number, upload_bytes = 0) => ({ atMs, download_bytes, upload_bytes });

test("rates are bytes divided by the time between readings", () => {
  assert.deepEqual(addSample([], reading(0, 100, 7), reading(2000, 300, 7), 10), [{ down: 100, up: 0 }]);
});

test("a reset counter gives no negative rate, and equal times give no sample", () => {
  assert.deepEqual(addSample([], reading(0, 100), reading(1000, 5), 10), [{ down: 0, up: 0 }]);
  assert.deepEqual(addSample([], reading(5, 1), reading(5, 9), 10), []);
});

test("the oldest samples are dropped", () => {
  const first = { down: 1, up: 1 };
  assert.deepEqual(addSample([first, first], reading(0, 0), reading(1000, 5), 2), [first, { down: 5, up: 0 }]);
});
