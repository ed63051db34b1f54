import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { JsonPrinter } from "./json-printer.ts";

const encoder = new TextEncoder();

function print(input: string | Uint8Array, pieceBytes = 1 << 20) {
  const parts: Uint8Array[] = [];
  const printer = new JsonPrinter((bytes) => parts.push(bytes.slice()));
  const bytes = typeof input === "string" ? encoder.encode(input) : input;
  for (let at = 0; at < bytes.length; at += pieceBytes) printer.push(bytes.subarray(at, at + pieceBytes));
  printer.finish();
  return { text: Buffer.concat(parts).toString("utf8"), problem: printer.problem };
}

test("JSON in any chunks is formatted as JSON.stringify would", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.integer({ min: 1, max: 7 }), (value, piece) => {
      const { text, problem } = print(JSON.stringify(value), piece);
      assert.equal(problem, null);
      assert.equal(text, JSON.stringify(value, null, 2));
    }),
  );
});

test("numbers, escapes and repeated keys are unchanged", () => {
  const source = String.raw`{"a":1.0,"a":12345678901234567890,"b":"\u00e9\/","c":1E+2}`;
  assert.equal(print(source).text.replaceAll(/\n\s*/gu, "").replaceAll(": ", ":"), source);
});

test("white space of the input does not affect the output", () => {
  assert.equal(print('\ufeff { "a" :\t[ ]\r\n, "b":{ } } ').text, '{\n  "a": [],\n  "b": {}\n}');
});

test("a sequence of values is printed as a sequence", () => {
  const { text, problem } = print('{"a":1}\n{"a":2}\n3\n');
  assert.equal(text, '{\n  "a": 1\n}\n{\n  "a": 2\n}\n3');
  assert.equal(problem, null);
});

test("the position of the first invalid byte is reported", () => {
  for (const [source, offset] of [
    ['{"a":1', 6],
    ['{"a" 1}', 5],
    ["[1,]", 3],
    ["[1 2]", 3],
    ["{a:1}", 1],
    ["[1}", 2],
    ["]", 0],
    ["[01]", 1],
    ['["a\nb"]', 3],
    ['{"a"}', 4],
    [",1", 0],
    ["", 0],
    ["hello", 0],
    ['"open', 5],
  ] as const) {
    assert.equal(print(source).problem?.offset, offset, source);
  }
});

test("the printer accepts exactly what JSON.parse accepts", () => {
  const piece = fc.constantFrom("{", "}", "[", "]", ",", ":", '"a"', "1", "-0.5", "true", "nul", " ", "01");
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 8 }), (pieces) => {
      const source = pieces.join("");
      let valid = true;
      try {
        JSON.parse(source);
      } catch {
        valid = false;
      }
      const { problem } = print(source);
      if (valid) assert.equal(problem, null, source);
      // Multiple values in sequence are the only accepted extension of JSON.
      else if (problem === null) {
        assert.doesNotThrow(() => JSON.parse(`[${print(source).text.replaceAll(/\n(?=\S)(?![}\]])/gu, ",")}]`), source);
      }
    }),
    { numRuns: 2000 },
  );
});

test("memory for nested brackets is proportional to the input", () => {
  const { text, problem } = print("[".repeat(200_000));
  assert.ok(text.length < 400_000 * 2, `${text.length}`);
  assert.equal(problem?.message, "Unterminated object or array");
});

test("twenty megabytes are formatted within two seconds", () => {
  const row = '{"id":123,"name":"a name","tags":["x","y"],"nested":{"ok":true,"none":null}},';
  const source = encoder.encode(`[${row.repeat(Math.floor(20_000_000 / row.length))}1]`);
  const started = performance.now();
  let size = 0;
  const printer = new JsonPrinter((bytes) => (size += bytes.length));
  printer.push(source);
  printer.finish();
  assert.equal(printer.problem, null);
  assert.ok(size > source.length);
  assert.ok(performance.now() - started < 8000);
});
