import assert from "node:assert/strict";
import { test } from "node:test";
import { hitBins } from "./hit-bins.ts";

test("hits are counted per time slice, newest last; older ones are dropped", () => {
  const nowMs = Date.parse("2026-01-01T00:10:00.000Z");
  const at = (seconds: number, mock_id = "a") => ({
    mock_id,
    timestamp: new Date(nowMs - seconds * 1000).toISOString(),
  });
  const bins = hitBins(
    [at(0), at(59), at(61), at(599), at(600), at(-5), at(1, "b"), { mock_id: "a", timestamp: "?" }],
    {
      nowMs,
      spanMs: 600_000,
      count: 10,
    },
  );
  assert.deepEqual(bins.get("a"), [1, 0, 0, 0, 0, 0, 0, 0, 1, 3]);
  assert.deepEqual(bins.get("b"), [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
});
