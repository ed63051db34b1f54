import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { processorMs } from "@headworks/testkit";
import { formatQuery } from "./format.ts";
import { parseQuery } from "./parse.ts";
import type { Query } from "./query.ts";
import { queries } from "../test/random-queries.ts";

function parsed(text: string): Query {
  const result = parseQuery(text);
  assert.ok(result.ok, result.ok ? "" : `${text}: ${result.error.message}`);
  return result.query;
}

const CANONICAL: readonly (readonly [string, string])[] = [
  ["", ""],
  ["host:*.example.com status:>=500 -type:image", "host:*.example.com status:>=500 -type:image"],
  ['method:(POST|PUT) body:"order_id"', "method:(POST|PUT) body:order_id"],
  ["resp.header[Set-Cookie]:* dur:>1s", "resp.header[set-cookie]:* dur:>1s"],
  ["json(resp,$.items[0].id):42", "json(resp,$.items[0].id):42"],
  ["since:10m before:2026-11-21T10:00:00Z", "since:10m before:2026-11-21T10:00:00.000Z"],
  ["a AND b OR c", "a b OR c"],
  ["(a OR b) AND NOT (c d)", "(a OR b) -(c d)"],
  ["--a", "a"],
  ["NOT -a", "a"],
  ["status:5xx", "status:5xx"],
  ["status:40x", "status:400..409"],
  ["status:(404|5xx)", "status:(404|5xx)"],
  ["dur:1000", "dur:1s"],
  ["dur:1.5s..2s", "dur:1500ms..2s"],
  ["size:>10kib", "size:>10240"],
  ["size:2MB..", "size:>=2mb"],
  ["DOMAIN:x", "host:x"],
  ["path:/api/v1/", 'path:"/api/v1/"'],
  ["path:/api/", 'path:"/api/"'],
  ["path:/^\\/api/", "path:/^\\/api/"],
  ["path:/status\\/4\\d\\d/", "path:/status\\/4\\d\\d/"],
  ["path:/api/*/x\\*/", "path:\\/api\\/*\\/x\\*\\/"],
  ["host:/api/i", "host:/api/i"],
  ["/a b+/", "/a b+/"],
  ["https://example.com/a?b=c", '"https://example.com/a?b=c"'],
  ['header:(a|"b c"|/d|e/)', 'header:(a|"b c"|/d|e/)'],
  ["path:/a(b)", 'path:"/a(b)"'],
  ["host:a\\*b", 'host:"a*b"'],
  ["url:=a*b", 'url:="a*b"'],
  ['"say \\"hi\\" \\u00e9"', '"say \\"hi\\" é"'],
  ["time:2026-11-21", "time:2026-11-21T00:00:00.000Z..2026-11-21T23:59:59.999Z"],
  ["time:>2026-11-21T10:00:00+02:00", "time:>2026-11-21T08:00:00.999Z"],
  ["state:completed", "state:complete"],
  ["passthrough:yes", "passthrough:true"],
  ["grpc.status:not_found", "grpc.status:NOT_FOUND"],
  ["grpc.status:!=0", "grpc.status:!=OK"],
  ["grpc.status:>=13", "grpc.status:>=INTERNAL"],
  ["grpc.status:1..99", "grpc.status:CANCELLED..99"],
  ['ws.text:"error" dir:received', "ws.text:error dir:in"],
  ["dir:(send|in)", "dir:(out|in)"],
  ["@errors -@slow", "@errors -@slow"],
  ["or and not", "or and not"],
  ["-", '"-"'],
  ["a\\[* req.header[x-a]:b", "a\\[* req.header[x-a]:b"],
];

for (const [text, canonical] of CANONICAL) {
  test(`\`${text}\` is read and written as \`${canonical}\``, () => {
    const query = parsed(text);
    assert.equal(formatQuery(query), canonical);
    assert.deepEqual(parsed(canonical), query);
  });
}

const REFUSED: readonly (readonly [string, RegExp, number, number])[] = [
  ["hots:x", /unknown field `hots`; did you mean `host`\?/, 0, 4],
  ["a grpc.server:x", /unknown field `grpc\.server`/, 2, 13],
  ["(a", /not closed/, 0, 1],
  ["a)", /no `\(`/, 1, 2],
  ["a OR", /missing after `OR`/, 4, 4],
  ["a AND OR b", /not `OR`/, 6, 8],
  ["status:", /needs a value/, 0, 7],
  ["status: 500", /needs a value/, 0, 7],
  ["status:abc", /such as `404`/, 7, 10],
  ["status>=400", /colon is missing: write `status:>=/, 0, 11],
  ["dur:1parsec", /such as `200ms`/, 4, 11],
  ["host:>3", /is text/, 4, 6],
  ["host[a]:b", /no name in brackets/, 5, 6],
  ["header[]:b", /is missing/, 0, 10],
  ['"abc', /not closed/, 0, 4],
  ["method:(a|", /missing in the list/, 10, 10],
  ["method:(a b)", /separated by `\|`/, 10, 11],
  ["host:/a(/", /in the pattern: the group is not closed/, 7, 8],
  ["body:/(a)\\1/", /backreferences/, 9, 11],
  ["host:=/a/", /use `:` with a pattern/, 6, 9],
  ["status:4xx|5xx", /several values need parentheses: `status:\(4xx\|5xx\)`/, 7, 14],
  ["status:4xx,5xx", /several values need parentheses: `status:\(4xx\|5xx\)`/, 7, 14],
  ["a method:GET|POST", /several values need parentheses: `method:\(GET\|POST\)`/, 9, 17],
  ["host:a.test|*.b.test", /`host:\(a\.test\|\*\.b\.test\)`/, 5, 20],
  ["state:failed|pending", /`state:\(failed\|pending\)`/, 6, 20],
  ["state:done", /one of pending, complete, failed/, 6, 10],
  ["dir:up", /`dir` is one of in, out/, 4, 6],
  ["a grpc.status:FINE", /`grpc\.status` needs a value such as `0`, `NOT_FOUND` or `1\.\.16`/, 14, 18],
  ["ws.text:>3", /is text/, 7, 9],
  ["ws.txt:a", /did you mean `ws\.text`/, 0, 6],
  ["@erors", /did you mean `@errors`/, 0, 6],
  ["since:soon", /needs an age/, 6, 10],
  ["json(resp,a):1", /begins with `\$`/, 10, 11],
  ["json(both,$):1", /write `json\(resp/, 0, 12],
  ["size:..", /such as `10kb`/, 5, 7],
  ["time:2026-02-30", /such as `2026/, 5, 15],
  ["cookie[sid]", /needs a colon/, 0, 11],
  ["path:/status/4\\d\\d/", /slash inside a pattern is written `\\\/`/, 12, 13],
  ["a /v1/\\w+/i", /slash inside a pattern is written `\\\/`/, 5, 6],
];

for (const [text, message, start, end] of REFUSED) {
  test(`\`${text}\` is refused at ${start}..${end}`, () => {
    const result = parseQuery(text);
    assert.ok(!result.ok);
    assert.match(result.error.message, message);
    assert.deepEqual([result.error.start, result.error.end], [start, end]);
  });
}

test("what a query is written as is read back as the same query", () => {
  fc.assert(
    fc.property(queries, (query) => {
      const text = formatQuery(query);
      const result = parseQuery(text);
      assert.ok(result.ok, result.ok ? "" : `${text}: ${result.error.message}`);
      assert.deepEqual(result.query, query, text);
    }),
    { numRuns: 2000 },
  );
});

test("any text is either a query or an error inside the text", () => {
  const piece = fc.constantFrom(
    "host:",
    "status:",
    "(",
    ")",
    "a",
    " ",
    "|",
    "-",
    "@errors",
    '"',
    "/",
    "*",
    "\\",
    "[",
    "]",
    "json(",
    "OR ",
    "NOT ",
    "..",
    "5xx",
    ":",
    "=",
    "😀",
    "$.",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ maxLength: 40 }),
        fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join("")),
      ),
      (text) => {
        const result = parseQuery(text);
        if (result.ok) {
          assert.deepEqual(parsed(formatQuery(result.query)), result.query);
        } else {
          assert.ok(
            result.error.start >= 0 && result.error.start <= result.error.end && result.error.end <= text.length,
            JSON.stringify(result.error),
          );
        }
      },
    ),
    { numRuns: 5000 },
  );
});

test("nesting and length are bounded", () => {
  assert.ok(parseQuery(`${"(".repeat(60)}a${")".repeat(60)}`).ok);
  assert.ok(!parseQuery(`${"(".repeat(5000)}a${")".repeat(5000)}`).ok);
  assert.ok(!parseQuery("a ".repeat(10_000)).ok);
  assert.ok(parseQuery("-".repeat(15_000) + "a").ok);
});

test("saved filters join the presets and must not contain themselves or explode", () => {
  const presets = { mine: "host:a @errors", loop: "@pool", pool: "-@loop", bad: "nope:1" };
  const result = parseQuery("@mine", { presets });
  assert.ok(result.ok && formatQuery(result.query) === "@mine");
  for (const [text, message] of [
    ["@loop", /contains itself/],
    ["x @bad", /in the preset `@bad`: unknown field/],
    ["@toString", /unknown preset/],
  ] as const) {
    const refused = parseQuery(text, { presets });
    assert.ok(!refused.ok);
    assert.match(refused.error.message, message);
  }
  const doubling = Object.fromEntries(
    Array.from({ length: 30 }, (_, index) => [`p${index}`, index === 29 ? "a" : `@p${index + 1} @p${index + 1}`]),
  );
  assert.ok(!parseQuery("@p0", { presets: doubling }).ok);
});

test("texts made to be slow are read in time", () => {
  for (const piece of [
    "/[ ",
    "/a ",
    "json( ",
    "header[ ",
    'a"',
    "(",
    "-",
    "a|",
    "host:(a|",
    '"\\',
    "@errors ",
    "a*",
    "a OR ",
  ]) {
    const text = piece.repeat(Math.floor(16_000 / piece.length));
    const tookMs = processorMs(() => void parseQuery(text));
    assert.ok(tookMs < 1000, `${piece}: ${tookMs} ms`);
  }
});
