import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";
import { pino } from "pino";
import { jsonLine, readRecord, textLines } from "./log-record.ts";

const text = (record: object): string => textLines(record as Record<string, unknown>, false);

test("a line for people holds time, level, message and facts", () => {
  assert.equal(
    text({ level: 40, time: 0, msg: "disk full", path: "/x y", count: 3, ok: "yes" }),
    '1970-01-01T00:00:00.000Z WARN  disk full path="/x y" count=3 ok=yes\n',
  );
});

test("an error's places follow below, its message stays one line, and nothing acts on a terminal", () => {
  const error = { type: "TypeError", message: "bad\u001b[2J", stack: "TypeError: bad\u001b[2J\n    at x (y.js:1:2)" };
  assert.equal(
    text({ level: 50, time: 0, msg: "failed \u0007", err: error }),
    "1970-01-01T00:00:00.000Z ERROR failed \\u0007\n    TypeError: bad\\u001b[2J\n        at x (y.js:1:2)\n",
  );
});

test("headers and bodies stand below, each line behind a mark", () => {
  const record = {
    level: 30,
    time: 0,
    msg: "> GET /",
    headers: [
      ["A", "1"],
      ["B", "2\r\nC: 3"],
      ["D", { toString: null }],
    ],
    body: "one\ntwo\r\n\u001b[0m",
  };
  assert.equal(
    text(record),
    '1970-01-01T00:00:00.000Z INFO  > GET /\n    A: 1\n    B: 2\\r\\nC: 3\n    D: {"toString":null}\n    | one\n    | two\n    | \\u001b[0m\n',
  );
});

test("a message with lines like those of a log or of a stack forges neither", () => {
  const forged = "x\n1970-01-01T00:00:00.000Z ERROR stolen\n    at evil (z.js:1:1)";
  const error = new Error(forged);
  const line = text({
    level: 30,
    time: 0,
    msg: forged,
    fact: forged,
    err: { type: "Error", message: forged, stack: error.stack },
  });
  const [first = "", second = "", ...places] = line.split("\n");
  assert.match(first, /^1970-01-01T00:00:00\.000Z INFO {2}x\\n1970.* fact="x\\n1970/);
  assert.match(second, /^ {4}Error: x\\n1970.*\\n {4}at evil/);
  for (const place of places.slice(0, -1)) assert.match(place, /^ {8}at (?!evil)/);
});

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const anything = fc.record(
  {
    msg: fc.string({ unit: anyCharacter }),
    url: fc.string({ unit: anyCharacter }),
    facts: fc.jsonValue({ stringUnit: anyCharacter }),
    headers: fc.jsonValue({ stringUnit: anyCharacter }),
    body: fc.string({ unit: anyCharacter }),
    time: fc.oneof(fc.integer(), fc.string({ unit: anyCharacter }), fc.double()),
    err: fc.record({
      type: fc.string({ unit: anyCharacter }),
      message: fc.string({ unit: anyCharacter }),
      stack: fc.string({ unit: anyCharacter }),
    }),
  },
  { requiredKeys: [] },
);

test("whatever is logged, no line begins but a record's own, and nothing invisible gets out", () => {
  fc.assert(
    fc.property(anything, (facts) => {
      const lines: string[] = [];
      pino({ base: null }, { write: (line: string) => void lines.push(line) }).info(facts, "said");
      const record = readRecord(lines[0] ?? "") ?? assert.fail("the logger's own line is read");
      const shown = text(record).slice(0, -1).split("\n");
      for (const [at, line] of shown.entries()) {
        assert.doesNotMatch(line, INVISIBLE);
        if (at > 0) assert.ok(line.startsWith("    "), line);
      }
      const json = jsonLine(record);
      assert.equal(json.indexOf("\n"), json.length - 1);
      assert.doesNotMatch(json.slice(0, -1), INVISIBLE);
      assert.deepEqual(JSON.parse(json), JSON.parse(JSON.stringify(record)));
    }),
    { numRuns: 200 },
  );
});

test("secrets of a record are hidden, but what was prepared for the log is left as it is", () => {
  const record = readRecord(
    JSON.stringify({
      msg: "to http://u:p@a.test/?token=x",
      password: "p",
      headers: [["X", "Bearer abcdefgh"]],
      body: "token=x&password=y",
    }),
  );
  assert.deepEqual(record, {
    msg: "to http://[REDACTED]@a.test/?token=[REDACTED]",
    password: "[REDACTED]",
    headers: [["X", "Bearer abcdefgh"]],
    body: "token=x&password=y",
  });
});

test("what is no JSON object is none", () => {
  for (const line of ["", "plain", "[1]", "null", "5"]) assert.equal(readRecord(line), undefined, line);
});
