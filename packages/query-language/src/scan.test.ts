import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { tokens } from "./scan.ts";

const CASES: readonly (readonly [string, string])[] = [
  ["host:a -status:(200|5xx)", "field:host operator:: value:a negation:- field:status operator:: value:200 value:5xx"],
  ["resp.header[set-cookie]:*", "field:resp.header key:set-cookie operator:: wildcard:*"],
  ['(a OR "b c") AND @errors', 'group:( value:a keyword:OR string:"b c" group:) keyword:AND preset:@errors'],
  ["body:/a b+/i nope:1", "field:body operator:: pattern:/a b+/i error:nope operator:: value:1"],
  ["dur:>=", "field:dur operator::>="],
  ["json(resp,$.a):1", "field:json key:resp,$.a operator:: value:1"],
  ['host:"unfinished', 'field:host operator:: string:"unfinished'],
];

for (const [text, expected] of CASES) {
  test(`\`${text}\` is coloured`, () => {
    assert.equal(
      tokens(text)
        .map(({ kind, start, end }) => `${kind}:${text.slice(start, end)}`)
        .join(" "),
      expected,
    );
  });
}

test("tokens of any text are in order, not empty and do not overlap", () => {
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
    "*",
    "\\",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join("")),
      ),
      (text) => {
        let at = 0;
        for (const token of tokens(text)) {
          assert.ok(token.start >= at && token.end > token.start && token.end <= text.length, JSON.stringify(token));
          at = token.end;
        }
      },
    ),
    { numRuns: 3000 },
  );
});
