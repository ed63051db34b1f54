import assert from "node:assert/strict";
import { test } from "node:test";
import { Via } from "./forwarded-fields.ts";

const INSTANCE = "0123456789abcdef";
const OTHER = "fedcba9876543210";

test("the pseudonym is the gateway's name and the instance; versions are those of RFC 9110 and RFC 9113", () => {
  const { requests, responses } = new Via({ name: "edge" }, INSTANCE);
  assert.deepEqual(requests, {
    "1.0": `1.0 edge-${INSTANCE}`,
    "1.1": `1.1 edge-${INSTANCE}`,
    "2": `2.0 edge-${INSTANCE}`,
  });
  assert.equal(responses, undefined, "responses have no Via by default");
});

test("either direction can be switched", () => {
  const { requests, responses } = new Via({ via: { requests: false, answers: true } }, INSTANCE);
  assert.equal(requests, undefined);
  assert.equal(responses?.["1.1"], `1.1 gateway-${INSTANCE}`);
});

const own = `1.1 gateway-${INSTANCE}`;
const cases: [name: string, fields: string[], maxPasses: number, isLoop: boolean][] = [
  ["no Via", ["Host", "a"], 1, false],
  ["another gateway", ["Via", "1.1 proxy.example, 1.0 fred (Apache)"], 1, false],
  ["another instance with the same name", ["Via", `1.1 gateway-${OTHER}`], 1, false],
  ["this instance", ["Via", own], 1, true],
  ["this instance among others", ["Via", `1.0 fred, ${own}, 2.0 cdn`], 1, true],
  ["this instance in another letter case of the field", ["vIA", own], 1, true],
  ["this instance under a name of an earlier generation", ["Via", `1.1 old-name-${INSTANCE}`], 1, true],
  ["in the second field", ["Via", "1.1 a", "X", "y", "Via", own], 1, true],
  ["once of two", ["Via", own], 2, false],
  ["twice in one field", ["Via", `${own}, ${own}`], 2, true],
  ["twice in two fields", ["Via", own, "Via", own], 2, true],
  ["this instance in another field", ["X-Via", own, "Vib", own], 1, false],
];
for (const [name, fields, maxPasses, isLoop] of cases) {
  test(`loop detection: ${name}, ${maxPasses} allowed: ${isLoop ? "a loop" : "none"}`, () => {
    assert.equal(new Via({ via: { max_passes: maxPasses } }, INSTANCE).isLoop(fields), isLoop);
  });
}
