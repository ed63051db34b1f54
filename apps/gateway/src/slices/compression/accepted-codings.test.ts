import assert from "node:assert/strict";
import { test } from "node:test";
import { CodingChoice } from "./compression.slice.ts";

for (const [accepted, expected] of [
  ["gzip, deflate, br, zstd", "br"],
  ["gzip", "gzip"],
  ["GZIP", "gzip"],
  ["x-gzip", "gzip"],
  ["zstd;q=0.1, gzip;q=1", "gzip"],
  ["br;q=0, gzip", "gzip"],
  ["br;q=0.000, zstd ; Q=0.5", "zstd"],
  ["*", "br"],
  ["br;q=0, *", "gzip"],
  ["*;q=0, zstd", "zstd"],
  ["*;q=0", undefined],
  ["identity", undefined],
  ["deflate, compress", undefined],
  ["", undefined],
  [",;,", undefined],
  ["br;q=2, gzip;q=x, zstd;q=", undefined],
  ["gzip;level=9", undefined],
  ["gzip;q=1;q=0", undefined],
  ["brotli", undefined],
  ["identity;q=0, *;q=0", undefined],
] as const) {
  test(`preference order, q=0 refuses, no overlap = identity: ${JSON.stringify(accepted)} is ${expected ?? "identity"}`, () => {
    const choice = new CodingChoice(["br", "gzip", "zstd"]);
    assert.deepEqual([choice.of(accepted), choice.of(accepted)], [expected, expected]);
  });
}

test("field values of hostile clients are not cached without a limit", () => {
  const choice = new CodingChoice(["gzip"]);
  for (let index = 0; index < 10_000; index += 1) choice.of(`gzip, x${index}`);
  assert.equal(choice.of("gzip;q=0"), undefined);
  assert.equal(choice.of("gzip"), "gzip");
});
