import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { presentedCredentials, SIGNING_FIELDS } from "./authentication-gate.ts";

test("most requests present nothing, and cost nothing", () => {
  const fields = [
    "Host",
    "a",
    "Accept-Encoding",
    "gzip",
    "Cache-Control",
    "no-cache",
    "X-Request-Id",
    "1",
    "X_API_Key",
    "k",
  ];
  assert.equal(presentedCredentials(fields), undefined);
  assert.equal(presentedCredentials([]), undefined);
  assert.equal(presentedCredentials(["", "x"]), undefined);
});

test("an Authorization value is taken apart at its first space, whatever it holds", () => {
  const cases: readonly [value: string, scheme: string, rest: string][] = [
    ["Basic abc=", "basic", "abc="],
    ["BEARER  a.b.c ", "bearer", "a.b.c"],
    ["Bearer\ta.b.c", "bearer", "a.b.c"],
    ["Digest a=1, b=2", "digest", "a=1, b=2"],
    ["Bearer", "bearer", ""],
    ["", "", ""],
    [" Bearer x", "", "Bearer x"],
  ];
  for (const [value, scheme, rest] of cases) {
    assert.deepEqual(presentedCredentials(["authorization", value])?.authorization, { scheme, rest }, value);
  }
});

test("a field is found in any letter case and place, and a second line is noticed", () => {
  const names = ["x-api-key", "authorization", ...Object.values(SIGNING_FIELDS)];
  const anyCase = (name: string): fc.Arbitrary<string> =>
    fc.mixedCase(fc.constant(name), { toggleCase: (letter) => letter.toUpperCase() });
  const other = fc.constantFrom(
    "Host",
    "x-api-keys",
    "x-api-ke",
    "authorizatiom",
    "x-gateway-noncf",
    "X-Forwarded-For",
    "a",
  );
  const field = fc.oneof(other, fc.constantFrom(...names).chain(anyCase));
  fc.assert(
    fc.property(fc.array(fc.tuple(field, fc.string({ maxLength: 5 })), { maxLength: 8 }), (pairs) => {
      const known = pairs
        .map(([name, value]) => [name.toLowerCase(), value] as const)
        .filter(([name]) => names.includes(name));
      const presented = presentedCredentials(pairs.flat());
      assert.equal(presented === undefined, known.length === 0);
      if (presented === undefined) return;
      const last = new Map(known);
      assert.equal(presented.apiKey, last.get("x-api-key"));
      assert.equal(presented.authorization !== undefined, last.has("authorization"));
      for (const name of Object.values(SIGNING_FIELDS)) assert.equal(presented.signing?.get(name), last.get(name));
      for (const name of names) {
        const isRepeated = known.filter(([each]) => each === name).length > 1;
        assert.equal(presented.repeated?.has(name) === true, isRepeated, name);
      }
    }),
  );
});
