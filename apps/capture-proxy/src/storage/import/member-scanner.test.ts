import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MemberScanner } from "./member-scanner.ts";

interface Found {
  readonly elements: unknown[];
  readonly values: unknown[];
  readonly stream: string;
  readonly arrays: number;
}

function scan(bytes: Uint8Array, pieceBytes: number): Found {
  const elements: unknown[] = [];
  const values: unknown[] = [];
  const pieces: Uint8Array[] = [];
  let arrays = 0;
  const scanner = new MemberScanner({
    elements: {
      list: ({ bytes: element }, index) =>
        assert.equal(elements.push(JSON.parse(new TextDecoder().decode(element))), index + 1),
    },
    arrays: { list: () => (arrays += 1) },
    values: { value: (value) => values.push(value) },
    streams: { stream: (piece) => void (piece === undefined ? undefined : pieces.push(piece.slice())) },
  });
  for (let at = 0; at < bytes.length; at += pieceBytes) scanner.write(bytes.subarray(at, at + pieceBytes));
  scanner.end();
  return { elements, values, stream: Buffer.concat(pieces).toString(), arrays };
}

test("a document yields the same parts with any white space and in chunks of any size", () => {
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue(), { maxLength: 5 }),
      fc.jsonValue(),
      fc.jsonValue(),
      fc.jsonValue(),
      fc.integer({ min: 1, max: 40 }),
      fc.constantFrom(undefined, 1, "\t", "\r\n "),
      (list, value, stream, other, pieceBytes, space) => {
        const text = JSON.stringify({ other, list, value, "str\\eam": 1, stream }, null, space);
        const found = scan(new TextEncoder().encode(text), pieceBytes);
        const plain = (part: unknown): unknown => JSON.parse(JSON.stringify(part));
        assert.deepEqual(found.elements, plain(list));
        assert.deepEqual(found.values, [plain(value)]);
        assert.deepEqual(JSON.parse(found.stream), plain(stream));
        assert.equal(found.arrays, 1);
      },
    ),
  );
});

test("a member that should be an array but is not is skipped", () => {
  for (const text of ['{"list":{"a":[1,2]}}', '{"list":"[1]"}', '{"list":7}', '{"list":null,"value":1}']) {
    assert.deepEqual(scan(Buffer.from(text), 3).elements, [], text);
  }
});

test("invalid documents of any bytes are rejected with a DocumentError only", () => {
  for (const text of [
    "",
    " ",
    "x",
    "[1]",
    '{"a"',
    '{"a":',
    '{"value":tru}',
    '{"a":1} {',
    "{a:1}",
    '{"list":[1',
    '{"a":"',
    '{"a":[}',
  ]) {
    assert.throws(() => scan(Buffer.from(text), 2), { name: "DocumentError" }, text);
  }
  const part = fc.constantFrom("{", "}", "[", "]", '"', "\\", ":", ",", "list", "value", "1", " ", "\u{0}");
  fc.assert(
    fc.property(fc.array(part, { maxLength: 30 }), fc.integer({ min: 1, max: 5 }), (parts, pieceBytes) => {
      const scanner = new MemberScanner({ elements: { list: () => undefined }, values: { value: () => undefined } });
      const bytes = Buffer.from(`{${parts.join("")}`);
      try {
        for (let at = 0; at < bytes.length; at += pieceBytes) scanner.write(bytes.subarray(at, at + pieceBytes));
        scanner.end();
      } catch (error) {
        assert.equal((error as Error).name, "DocumentError");
      }
    }),
  );
});
