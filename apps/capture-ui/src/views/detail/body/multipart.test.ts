import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { splitMultipart } from "./multipart.ts";

const split = (body: string, type = "multipart/form-data; boundary=xX") => {
  const bytes = new TextEncoder().encode(body);
  const { parts, problem } = splitMultipart(bytes, type);
  return { problem, parts: parts.map((part) => ({ ...part, text: new TextDecoder().decode(bytes.subarray(part.start, part.end)) })) };
};

test("fields and files are found with their names, types and exact content", () => {
  const { parts, problem } = split(
    [
      "preamble",
      "--xX",
      'Content-Disposition: form-data; name="a"',
      "",
      "one",
      "--xX",
      'Content-Disposition: form-data; name="f"; filename="r\\"x.bin"',
      "Content-Type: application/octet-stream",
      "",
      "line\r\n--not a boundary\r\n",
      "--xX--",
      "",
    ].join("\r\n"),
  );
  assert.equal(problem, null);
  assert.deepEqual(
    parts.map(({ name, filename, contentType, text }) => [name, filename, contentType, text]),
    [
      ["a", null, null, "one"],
      ["f", 'r"x.bin', "application/octet-stream", "line\r\n--not a boundary\r\n"],
    ],
  );
});

test("a body that was cut shows what is there and says so", () => {
  const { parts, problem } = split('--xX\nContent-Disposition: form-data; name="a"\n\nhalf of it');
  assert.equal(parts[0]?.text, "half of it");
  assert.equal(problem, "The last part has no end");
});

test("what is no multipart body is refused in words", () => {
  assert.match(split("x", "multipart/form-data").problem ?? "", /no boundary/u);
  assert.match(split("x").problem ?? "", /does not appear/u);
  assert.match(split("--xX").problem ?? "", /inside a boundary/u);
});

test("hostile bytes never throw and parts never leave the body", () => {
  const piece = fc.constantFrom("--xX", "\r\n", "\n", "--", ":", "a", "Content-Disposition: form-data; name=", '"');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const body = pieces.join("");
      for (const part of split(body).parts) assert.ok(part.start >= 0 && part.start <= part.end && part.end <= body.length);
    }),
  );
});

test("thousands of parts are cut to a bound", () => {
  const { parts, problem } = split("--xX\n\nx\n".repeat(5000));
  assert.equal(parts.length, 1000);
  assert.match(problem ?? "", /first 1000/u);
});
