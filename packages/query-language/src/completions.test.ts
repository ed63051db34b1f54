import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { completions, type ValuesSource } from "./completions.ts";
import { parseQuery } from "./parse.ts";
import { formatQuery } from "./format.ts";
import { queries } from "../test/random-queries.ts";

async function labels(text: string, source?: ValuesSource): Promise<readonly string[]> {
  return (await completions(text, text.length, source)).map(({ label }) => label);
}

test("an empty line offers fields and presets", async () => {
  const offered = await labels("");
  for (const expected of ["method", "host", "@errors", "json(…)", "NOT"]) {
    assert.ok(offered.includes(expected), expected);
  }
  assert.ok(!offered.includes("AND"));
});

test("the beginning of a word offers the fields that begin so, in any of their parts", async () => {
  assert.deepEqual(await labels("me"), ["method", "grpc.method"]);
  const offered = await labels("status:200 bod");
  assert.deepEqual(offered, ["body", "req.body", "resp.body"]);
  assert.deepEqual(
    (await completions("-por", 4)).map(({ start, end, insert }) => ({ start, end, insert })),
    [{ start: 1, end: 4, insert: "port:" }],
  );
});

test("keywords are offered where they can stand", async () => {
  assert.ok((await labels("a ")).includes("OR"));
  assert.ok(!(await labels("a OR ")).includes("OR"));
  assert.ok((await labels("a O")).includes("OR"));
});

test("after a colon come known values, then values from the traffic, quoted where needed", async () => {
  const asked: unknown[] = [];
  const source: ValuesSource = async (request) => {
    asked.push(request);
    return [
      { value: "GET", count: 3 },
      { value: "G E", count: 1 },
      { value: "GRAB", count: 3 },
    ];
  };
  const offered = await completions("method:(POST|g", 14, source);
  assert.deepEqual(asked, [{ field: "method", key: null, prefix: "g" }]);
  assert.deepEqual(
    offered.map(({ label, insert, start, end, detail }) => ({ label, insert, start, end, detail })),
    [
      { label: "GET", insert: "GET", start: 13, end: 14, detail: "" },
      { label: "G E", insert: '"G E"', start: 13, end: 14, detail: "seen once" },
      { label: "GRAB", insert: "GRAB", start: 13, end: 14, detail: "seen 3 times" },
    ],
  );
});

test("a bare colon also offers operators that suit the field", async () => {
  assert.ok((await labels("dur:")).includes(">="));
  assert.ok(!(await labels("host:")).includes(">="));
  assert.deepEqual(await labels("grpc.status:un"), ["UNKNOWN", "UNIMPLEMENTED", "UNAVAILABLE", "UNAUTHENTICATED"]);
  assert.ok((await labels("grpc.status:")).includes("!="));
  assert.deepEqual(await labels("dir:"), ["in", "out", "=", "!=", "(", "/", "*"]);
  assert.deepEqual(await labels("ws"), ["ws.text"]);
  assert.deepEqual(await labels("state:"), ["pending", "complete", "failed", "closed", "=", "!=", "(", "/", "*"]);
});

test("header names are completed inside brackets, and their values by name", async () => {
  assert.deepEqual(await labels("resp.header[set"), ["set-cookie"]);
  const asked: unknown[] = [];
  await completions("req.header[accept]:te", 21, async (request) => {
    asked.push(request);
    return [];
  });
  assert.deepEqual(asked, [{ field: "req.header", key: "accept", prefix: "te" }]);
});

test("bodies and messages are never asked for values, and a failing source counts as empty", async () => {
  const failing: ValuesSource = async () => Promise.reject(new Error("gone"));
  assert.deepEqual(await labels("host:x", failing), []);
  const asked: string[] = [];
  for (const text of ["body:x", "ws.text:x"]) {
    await completions(text, text.length, async ({ field }) => {
      asked.push(field);
      return [];
    });
  }
  assert.deepEqual(asked, []);
});

test("completion survives every prefix of every query and stays inside the text", async () => {
  const source: ValuesSource = async ({ prefix }) => [{ value: `${prefix} "x"` }];
  const piece = fc.constantFrom(
    "host:",
    "header[",
    "]",
    "json(",
    "(",
    ")",
    "|",
    '"',
    "/",
    "@",
    "-",
    " ",
    "a",
    "é",
    "😀",
    ":",
    ":=",
    "*",
  );
  const texts = fc.oneof(
    queries.map(formatQuery),
    fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join("")),
  );
  await fc.assert(
    fc.asyncProperty(texts, async (text) => {
      for (let caret = -1; caret <= text.length + 1; caret += 1) {
        for (const suggestion of await completions(text, caret, source)) {
          assert.ok(suggestion.start >= 0 && suggestion.start <= suggestion.end && suggestion.end <= text.length);
          assert.ok(suggestion.end <= Math.max(caret, 0));
        }
      }
    }),
    { numRuns: 500 },
  );
});

test("accepting a value from the traffic gives a query that parses", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ minLength: 1, maxLength: 12 }), async (value) => {
      const [accepted] = await completions("note:", 5, async () => [{ value }]);
      assert.ok(accepted !== undefined);
      const result = parseQuery(`note:${accepted.insert}`);
      assert.ok(result.ok && result.query.kind === "field" && result.query.test.kind === "text");
      assert.deepEqual(result.query.test.values, [{ kind: "literal", text: value }]);
    }),
    { numRuns: 1000 },
  );
});
