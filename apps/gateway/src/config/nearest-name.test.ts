import assert from "node:assert/strict";
import { test } from "node:test";
import { nearestName, suggestion } from "./nearest-name.ts";

const fields = ["name", "address", "port", "timeout_ms", "max_attempts", "backoff_base_ms", "backoff_cap_ms"];

for (const [written, meant] of [
  ["prot", "port"],
  ["Port", "port"],
  ["adress", "address"],
  ["timeoutMs", "timeout_ms"],
  ["backoff_cap", "backoff_cap_ms"],
  ["backof_base_ms", "backoff_base_ms"],
  ["retries", undefined],
  ["x", undefined],
  ["", undefined],
  ["n".repeat(100_000), undefined],
] as const) {
  void test(`the nearest of the names that ${written.slice(0, 20)} may mean is ${meant}`, () => {
    assert.equal(nearestName(written, fields), meant);
  });
}

void test("a suggestion is the end of a sentence, or nothing", () => {
  assert.equal(suggestion("prot", fields), '. Did you mean "port"?');
  assert.equal(suggestion("zzz", fields), "");
});
