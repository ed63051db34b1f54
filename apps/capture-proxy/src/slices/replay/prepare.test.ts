import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ApiError } from "#api/api-error.ts";
import { modified, prepared } from "./prepare.ts";
import type { Variables } from "./prepare.ts";
import type { ReplayRequest } from "./replay-request.ts";

const request = (more: Partial<ReplayRequest> = {}): ReplayRequest => ({
  method: "GET",
  url: "http://a.example/p",
  fields: ["Host", "a.example", "X-A", "1"],
  body: undefined,
  ...more,
});
const variables = (given: Record<string, string> = {}, more: Partial<Variables> = {}): Variables => ({
  given,
  iteration: 1,
  nowMs: 1_700_000_000_123,
  ...more,
});
const text = (bytes: Uint8Array | undefined): string | undefined => bytes && Buffer.from(bytes).toString();

test("an empty modification changes nothing, and the original request is not mutated", () => {
  const original = request({ body: Buffer.from("b") });
  assert.deepEqual(modified(original, {}), original);
  modified(original, { headers: { "X-A": "2" }, remove_headers: ["host"] });
  assert.deepEqual(original.fields, ["Host", "a.example", "X-A", "1"]);
});

test("Host follows the URL to another authority, unless it is given or the authority is the same", () => {
  const hostOf = (changes: object): string | undefined => {
    const { fields } = modified(request(), changes);
    return fields[fields.indexOf("Host") + 1];
  };
  assert.equal(modified(request(), { url: "http://b.example/" }).fields.includes("Host"), false);
  assert.equal(hostOf({ url: "http://A.example/other" }), "a.example");
  assert.equal(hostOf({ url: "http://b.example/", headers: { Host: "c.example" } }), "c.example");
});

const BUILT_IN: readonly [string, RegExp | string][] = [
  ["{{$timestamp}}", "1700000000"],
  ["{{$timestamp_ms}}", "1700000000123"],
  ["{{ $iso_timestamp }}", "2023-11-14T22:13:20.123Z"],
  ["{{$iteration}}", "1"],
  ["{{$random_int}}", /^\d{1,9}$/u],
  ["{{$uuid}}", /^[\da-f]{8}-/u],
  ["{{$nothing}}", "{{$nothing}}"],
  ["{{toString}}", "{{toString}}"],
  ["{{}} {{ }} {{1}} {", "{{}} {{ }} {{1}} {"],
];
for (const [place, expected] of BUILT_IN) {
  test(`${place} becomes ${expected}`, () => {
    const value = text(prepared(request({ body: Buffer.from(place) }), variables()).body) ?? "";
    if (typeof expected === "string") assert.equal(value, expected);
    else assert.match(value, expected);
  });
}

test("inserted values are not scanned for variables again", () => {
  const given = { a: "{{b}}", b: "no" };
  assert.equal(text(prepared(request({ body: Buffer.from("{{a}}") }), variables(given)).body), "{{b}}");
});

test("a field with a variable has one encoding: Latin-1 where possible, UTF-8 otherwise", () => {
  const utf8 = (value: string): string => Buffer.from(value).toString("latin1");
  for (const [value, v, octets] of [
    ["{{v}}", "é", "\xe9"],
    ["é{{v}}", "é", "éé"],
    ["é{{v}}", "日", utf8("é日")],
    [utf8("€{{v}}"), "日", utf8("€日")],
    [utf8("€{{v}}"), "é", utf8("€é")],
    [utf8("€{{v}}"), "x", utf8("€x")],
  ] as const) {
    const { fields } = prepared(request({ fields: ["A", value] }), variables({ v }));
    assert.deepEqual(fields, ["A", octets]);
  }
});

test("bytes around a variable stay unchanged, and compressed bodies have no variables", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ maxLength: 40 }), (before, behind) => {
      const body = Buffer.concat([before, Buffer.from("{{v}}"), behind]);
      const expected = Buffer.concat([before, Buffer.from("é"), behind]);
      assert.equal(Buffer.from(prepared(request({ body }), variables({ v: "é" })).body ?? []).compare(expected), 0);
      const coded = request({ body, fields: ["Content-Encoding", "gzip"] });
      assert.equal(prepared(coded, variables({ v: "é" })).body, body);
    }),
  );
});

test("a variable can neither inject a field nor exceed the body limit", () => {
  const split = request({ fields: ["X-A", "{{v}}"] });
  assert.throws(() => prepared(split, variables({ v: "a\r\nB: c" })), ApiError);
  assert.throws(() => prepared(request({ url: "http://{{v}}/" }), variables({ v: "a b" })), ApiError);
  const many = request({ body: Buffer.from("{{v}}".repeat(5000)) });
  assert.throws(() => prepared(many, variables({ v: "x".repeat(10_000) })), /larger/u);
});

test("an unresolved variable in the URL is named", () => {
  for (let time = 0; time < 2; time += 1) {
    assert.throws(
      () => prepared(request({ url: "{{scheme}}://a/" }), variables()),
      /variable scheme, which has no value/u,
    );
  }
});
