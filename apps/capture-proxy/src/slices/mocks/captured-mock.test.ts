import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compileCondition, parseCondition } from "@headworks/match-condition";
import { exactly, responseOf } from "./captured-mock.ts";
import { sampleSubject } from "./mocks.operations.ts";

async function matches(url: string, asked: string, method = "GET"): Promise<boolean> {
  const read = parseCondition(exactly("GET", url));
  assert.ok(read.ok, JSON.stringify(read));
  return compileCondition(read.condition).matches(await sampleSubject({ url: asked, method }, ""));
}

test("the condition of a captured request matches its URL and method and no other", async () => {
  const url = "https://a.test/x/*.(js|css)?a=[1]&b={2}+3^4$5";
  assert.equal(await matches(url, url), true);
  assert.equal(await matches(url, url, "POST"), false);
  for (const other of [
    `${url}6`,
    url.replace("a=[1]", "a=1"),
    url.replace("*", "x"),
    url.replace("a.test", "axtest"),
  ]) {
    assert.equal(await matches(url, other), false, other);
  }
});

test("any valid URL is matched by its own condition, long ones by their beginning", async () => {
  const part = fc.stringMatching(/^[!-~]{0,40}$/).map((text) => text.replaceAll("#", ""));
  await fc.assert(
    fc.asyncProperty(part, part, fc.integer({ min: 0, max: 400 }), async (path, query, times) => {
      const url = `http://a.test/${path.replaceAll("?", "")}${"(x)".repeat(times)}?${query}`;
      assert.equal(await matches(url, url), true);
    }),
    { numRuns: 40 },
  );
  const long = `http://a.test/${"(long)".repeat(300)}`;
  assert.equal(await matches(long, `${long}/other`), true);
  assert.equal(await matches(long, "http://a.test/short"), false);
});

test("a response keeps its fields and bytes, except hop-by-hop fields", () => {
  const fields: [string, string][] = [
    ["Content-Type", "text/plain"],
    ["set-cookie", "a=1"],
    ["Set-Cookie", "b=2"],
    ["Content-Length", "3"],
    ["Transfer-Encoding", "chunked"],
    ["Connection", "keep-alive"],
    ["Bad Name", "x"],
    ["X-Odd", "a\r\nb"],
  ];
  const text = responseOf(200, fields, Buffer.from("abc"), "GET");
  assert.deepEqual(typeof text === "object" && [text.body, text.body_base64, text.headers], [
    "abc",
    null,
    { "Content-Type": "text/plain", "set-cookie": ["a=1", "b=2"], "X-Odd": "a  b" },
  ]);
  const bytes = responseOf(200, [], Buffer.from([0xff, 0xfe]), "GET");
  assert.deepEqual(typeof bytes === "object" && [bytes.body, bytes.body_base64], [null, "//4="]);
  const coded = responseOf(200, [["Content-Encoding", "zzz"]], Buffer.from("still coded"), "GET");
  assert.deepEqual(typeof coded === "object" && [coded.body, coded.headers], [null, { "Content-Encoding": "zzz" }]);
  const large = responseOf(200, [], Buffer.alloc(6_000_000), "GET");
  assert.match(typeof large === "string" ? large : "", /larger than/);
});

test("a body that is not in its declared charset is kept as bytes, since text would be converted", () => {
  const type: [string, string] = ["Content-Type", "text/plain; charset=iso-8859-1"];
  const lie = responseOf(200, [type], Buffer.from("é"), "GET");
  assert.deepEqual(typeof lie === "object" && [lie.body, lie.body_base64], [null, "w6k="]);
  const ascii = responseOf(200, [type], Buffer.from("e"), "GET");
  assert.deepEqual(typeof ascii === "object" && [ascii.body, ascii.body_base64], ["e", null]);
});
