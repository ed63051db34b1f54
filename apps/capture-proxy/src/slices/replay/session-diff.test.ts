import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { pairRequests } from "./diff.ts";

const NONE = (): boolean => false;

const asked = (...texts: string[]) =>
  texts.map((text) => {
    const [method = "", url = ""] = text.split(" ");
    return { method, url };
  });

const show = (pairing: ReturnType<typeof pairRequests>) => ({
  pairs: pairing.pairs.map(({ left, right }) => `${left.method} ${left.url} = ${right.method} ${right.url}`),
  left: pairing.onlyLeft.map(({ method, url }) => `${method} ${url}`),
  right: pairing.onlyRight.map(({ method, url }) => `${method} ${url}`),
});

test("requests of the same method and URL are paired in order, regardless of others between", () => {
  const left = asked("GET http://a/1", "GET http://a/2", "GET http://a/1", "POST http://a/1");
  const right = asked("GET http://a/1", "GET http://a/3", "GET http://a/2");
  assert.deepEqual(show(pairRequests(left, right, NONE)), {
    pairs: ["GET http://a/1 = GET http://a/1", "GET http://a/2 = GET http://a/2"],
    left: ["GET http://a/1", "POST http://a/1"],
    right: ["GET http://a/3"],
  });
});

test("pairing depends on values of query parameters, not on their order or on ignored ones", () => {
  const left = asked("GET http://a/?x=1&y=2", "GET http://a/?x=1&at=1", "GET http://a/?x=3");
  const right = asked("GET http://a/?y=2&x=1", "GET http://a/?x=1&at=2", "GET http://a/?x=4");
  assert.deepEqual(show(pairRequests(left, right, (name) => name === "at")).pairs, [
    "GET http://a/?x=1&y=2 = GET http://a/?y=2&x=1",
    "GET http://a/?x=1&at=1 = GET http://a/?x=1&at=2",
  ]);
});

test("every request is in exactly one pair or unpaired, and no pairable requests stay unpaired", () => {
  const request = fc.record({
    method: fc.constantFrom("GET", "POST"),
    url: fc.constantFrom("http://a/", "http://a/?b=1", "http://a/?c=1&b=1", "http://b/"),
  });
  fc.assert(
    fc.property(fc.array(request), fc.array(request), (left, right) => {
      const { pairs, onlyLeft, onlyRight } = pairRequests(left, right, NONE);
      assert.equal(pairs.length + onlyLeft.length, left.length);
      assert.equal(pairs.length + onlyRight.length, right.length);
      assert.equal(new Set(pairs.map((pair) => pair.right)).size, pairs.length);
      const key = ({ method, url }: { method: string; url: string }): string => `${method} ${url}`;
      const alone = new Set(onlyLeft.map(key));
      assert.ok(!onlyRight.some((one) => alone.has(key(one))));
    }),
  );
});
