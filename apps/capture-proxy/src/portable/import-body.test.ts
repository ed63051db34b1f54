import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { ApiError } from "#api/api-error.ts";
import { readImport } from "./import-body.ts";

type Query = Parameters<typeof readImport>[1];

async function given(text: string | Uint8Array, query: Query = {}, limitBytes = 1000): Promise<unknown> {
  const bytes = Buffer.from(text);
  // Byte by byte, so that characters are cut.
  const pieces = Readable.from(Array.from(bytes, (byte) => Uint8Array.of(byte)));
  try {
    return await readImport(pieces, query, ["data", "text"], limitBytes);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error.details === undefined
      ? `${error.code}: ${error.message}`
      : error.details.map(({ path, message }) => `${path}: ${message}`);
  }
}

test("the document is the body, or held by it as an object or as text; the query wins", async () => {
  const document = { version: 1, name: "é" };
  const merge = { mode: "merge", dryRun: false } as const;
  assert.deepEqual(await given(JSON.stringify(document)), { document, at: "body", ...merge });
  assert.deepEqual(await given(JSON.stringify({ data: document })), { document, at: "body/data", ...merge });
  assert.deepEqual(await given(JSON.stringify({ text: JSON.stringify(document), mode: "replace", dry_run: true })), {
    document,
    at: "body/text",
    mode: "replace",
    dryRun: true,
  });
  assert.deepEqual(
    await given(JSON.stringify({ data: document, mode: "replace", dry_run: true }), {
      mode: "merge",
      dry_run: "false",
    }),
    { document, at: "body/data", ...merge },
  );
});

test("what is no import is refused with the place", async () => {
  const cases: readonly (readonly [text: string | Uint8Array, expected: unknown])[] = [
    ["", "BAD_REQUEST: The body is not valid JSON"],
    ["{", "BAD_REQUEST: The body is not valid JSON (at position 1)"],
    [Uint8Array.of(0x22, 0xff, 0x22), "BAD_REQUEST: The body is not valid UTF-8"],
    [Uint8Array.of(0x22, 0xc3), "BAD_REQUEST: The body is not valid UTF-8"],
    ["[]", ["body: must be an object"]],
    [String.raw`{"rules":["\ud800"]}`, ["body/rules/0: has ill-formed Unicode: half of a surrogate pair"]],
    [String.raw`{"data":"[\"\\udc00\"]"}`, ["body/data/0: has ill-formed Unicode: half of a surrogate pair"]],
    ['{"data":"{"}', "BAD_REQUEST: The text in data is not valid JSON (at position 1)"],
    ['{"data":{},"text":"","other":1}', ["body/text: cannot stand beside data", "body/other: unknown property"]],
    [
      '{"data":{},"mode":"all","dry_run":1}',
      ['body/mode: must be one of "merge", "replace"', "body/dry_run: must be boolean"],
    ],
    [`"${"x".repeat(1000)}"`, "PAYLOAD_TOO_LARGE: The body is larger than 1000 bytes"],
  ];
  for (const [text, expected] of cases) assert.deepEqual(await given(text), expected, String(text));
});

test("a connection that breaks is no bad document", async () => {
  const broken = Readable.from(
    (async function* () {
      yield Buffer.from("{");
      throw new Error("cut");
    })(),
  );
  await assert.rejects(readImport(broken, {}, ["data"]), /cut/);
});
