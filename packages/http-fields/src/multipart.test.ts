import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { processorMs } from "@headworks/testkit";
import { multipartBoundary, parseMultipart, parseMultipartBody } from "./index.ts";

const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");
const bodies = (input: Buffer, boundary = "b"): string[] =>
  (parseMultipart(input, boundary)?.parts ?? []).map(({ body }) => Buffer.from(body).toString("latin1"));

test("a form of the platform's own making is taken apart", async () => {
  const form = new FormData();
  form.append("text", "värde\r\n--not-a-boundary");
  form.append('odd "name"\r\n', "");
  form.append("file", new File([Uint8Array.of(0, 13, 10, 45, 45, 255)], 'a"b\\ü.bin', { type: "application/x-test" }));
  const request = new Request("http://localhost/", { method: "POST", body: form });
  const contentType = request.headers.get("content-type") ?? "";
  const multipart = parseMultipartBody(new Uint8Array(await request.arrayBuffer()), contentType);
  assert.equal(multipart?.isComplete, true);
  assert.deepEqual(
    multipart?.parts.map(({ name, filename, contentType: type }) => [name, filename, type]),
    [
      ["text", undefined, undefined],
      ['odd "name"\r\n', undefined, undefined],
      ["file", 'a"b\\ü.bin', "application/x-test"],
    ],
  );
  assert.equal(Buffer.from(multipart?.parts[0]?.body ?? []).toString(), "värde\r\n--not-a-boundary");
  assert.deepEqual(multipart?.parts[2]?.body, Uint8Array.of(0, 13, 10, 45, 45, 255));
});

const shapes: [name: string, input: string, bodies: string[], isComplete: boolean][] = [
  ["preamble and epilogue", "pre\r\n--b\r\n\r\nx\r\n--b--\r\nepilogue\r\n--b\r\n\r\ny\r\n--b--", ["x"], true],
  ["line feeds alone", "--b\nA: 1\n\nx\ny\n--b\n\nz\n--b--\n", ["x\ny", "z"], true],
  ["padding after the boundary", "--b \t\r\n\r\nx\r\n--b-- \r\n", ["x"], true],
  ["a longer line that begins like the boundary", "--b\r\n\r\n--bc\r\n--b--", ["--bc"], true],
  ["the boundary inside a line", "--b\r\n\r\nx--b--\r\n--b--", ["x--b--"], true],
  ["empty parts", "--b\r\n\r\n\r\n--b\r\n\r\n\r\n--b--", ["", ""], true],
  ["a part without headers or empty line", "--b\r\nA: 1\r\n--b--", [""], true],
  ["no end", "--b\r\n\r\nx\r\n--b\r\n\r\nhalf", ["x", "half"], false],
  ["an end within the boundary", "--b\r\n\r\nx\r\n-", ["x\r\n-"], false],
  ["nothing after the delimiter", "--b\r\n", [], false],
  ["no parts", "--b--", [], true],
];

for (const [name, input, expected, isComplete] of shapes) {
  test(`a body with ${name} is split`, () => {
    assert.deepEqual(bodies(latin1(input)), expected);
    assert.equal(parseMultipart(latin1(input), "b")?.isComplete, isComplete);
  });
}

test("a body without any delimiter line is no multipart", () => {
  for (const text of ["", "text", "x--b\r\n", "--bb\r\n"]) assert.equal(parseMultipart(latin1(text), "b"), undefined);
});

const dispositions: [value: string, name: string | undefined, filename: string | undefined][] = [
  ['form-data; name="a"; filename="C:\\dir\\f.txt"', "a", "C:\\dir\\f.txt"],
  ['form-data; name="a\\"b;c"; filename=plain', 'a"b;c', "plain"],
  ['form-data; NAME=a; filename="100%25.txt"', "a", "100%25.txt"],
  ["attachment; filename=x; filename*=UTF-8''%e2%82%ac.txt", undefined, "€.txt"],
  ["attachment; filename*=iso-8859-1'en'%A3.txt", undefined, "£.txt"],
  ["attachment; filename=x; filename*=odd''y", undefined, "x"],
  ["form-data", undefined, undefined],
];

for (const [value, name, filename] of dispositions) {
  test(`the disposition ${value} names ${name ?? "nothing"} and the file ${filename ?? "nothing"}`, () => {
    const input = Buffer.from(`--b\r\ncontent-disposition:${value}\r\nX: folded\r\n value\r\n\r\nbody\r\n--b--`);
    const part = parseMultipart(input, "b")?.parts[0];
    assert.deepEqual([part?.name, part?.filename], [name, filename]);
    assert.deepEqual(part?.headers[1], ["X", "folded value"]);
  });
}

test("boundaries are taken from multipart types only, and not without measure", () => {
  assert.equal(multipartBoundary('multipart/mixed; boundary="a b"'), "a b");
  for (const text of ["text/plain; boundary=a", "multipart/form-data", "multipart/form-data; boundary=", undefined]) {
    assert.equal(multipartBoundary(text), undefined);
  }
  assert.equal(multipartBoundary(`multipart/form-data; boundary=${"x".repeat(300)}`), undefined);
});

test("the number of parts and the size of their headers are bounded", () => {
  const many = parseMultipart(latin1(`${"--b\r\n\r\nx\r\n".repeat(50)}--b--`), "b", { maxParts: 10 });
  assert.deepEqual([many?.parts.length, many?.isComplete], [10, false]);
  const large = parseMultipart(latin1(`--b\r\nA: ${"x".repeat(100)}\r\n\r\nbody\r\n--b--`), "b", {
    maxHeaderBytes: 50,
  });
  assert.deepEqual(large?.parts[0]?.headers, []);
  assert.equal(Buffer.from(large?.parts[0]?.body ?? []).toString(), "body");
});

test("any parts without the delimiter are parsed unchanged", () => {
  const part = fc.uint8Array({ maxLength: 60 }).filter((bytes) => !Buffer.from(bytes).includes("--b0undary"));
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 5 }), (parts) => {
      const input = Buffer.concat([
        ...parts.flatMap((bytes) => [latin1("--b0undary\r\nA: b\r\n\r\n"), bytes, latin1("\r\n")]),
        latin1("--b0undary--"),
      ]);
      const multipart = parseMultipart(input, "b0undary");
      assert.deepEqual(
        multipart?.parts.map(({ body }) => [...body]),
        parts.map((bytes) => [...bytes]),
      );
    }),
  );
});

test("hostile bytes are handled in linear time", () => {
  const noise = fc.array(fc.constantFrom("--b", "\r\n", "\n", "--", ":", " ", "x", "A: b"), { maxLength: 40 });
  fc.assert(
    fc.property(noise, (pieces) => void parseMultipart(latin1(pieces.join("")), "b")),
    { numRuns: 1000 },
  );
  const dashes = Buffer.concat([Buffer.alloc(2_000_000, "-"), latin1("\n")]);
  const lines = Buffer.alloc(2_000_000, "\n-");
  const tookMs = processorMs(() => {
    assert.equal(parseMultipart(dashes, "-".repeat(200)), undefined);
    assert.equal(parseMultipart(lines, "-".repeat(200)), undefined);
  });
  assert.ok(tookMs < 3000, `${tookMs} ms`);
});
