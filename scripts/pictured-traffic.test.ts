import assert from "node:assert/strict";
import { test } from "node:test";
import { picturedTraffic } from "./pictured-traffic.ts";

interface Entry {
  readonly startedDateTime: string;
  readonly request: { readonly url: string };
  readonly response: { readonly bodySize: number; readonly content: { readonly text?: string } };
}

test("the visit is a HAR in chronological order, to reserved host names, ending before the given time", () => {
  const endMs = Date.parse("2026-01-02T03:04:05.678Z");
  const { log } = JSON.parse(picturedTraffic(endMs)) as { log: { version: string; entries: Entry[] } };
  assert.equal(log.version, "1.2");
  assert.ok(log.entries.length > 20);
  const times = log.entries.map((entry) => Date.parse(entry.startedDateTime));
  assert.deepEqual(
    times,
    [...times].sort((a, b) => a - b),
  );
  assert.ok(Math.max(...times) <= endMs);
  for (const { request } of log.entries) assert.match(new URL(request.url).hostname, /\.?example$/);
});
