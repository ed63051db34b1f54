import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { canonicalTarget, checkPath, type PathFault } from "./request-path.ts";

const PASS: readonly string[] = [
  "/",
  "/v1/users?page=2&q=a/../b",
  "/a%2fb",
  "/a%2Fb%5c",
  "//double//slashes//",
  "/...",
  "/.hidden/..a/a../a..b",
  "/%2e%2e%2e",
  "/.well-known/x",
  "/a;v=1/b;..",
  "/%C3%A9/%e2%82%ac/%F0%9F%98%80",
  "/%C0propos",
  "/%E0%A0%80",
  "/%252e%252e/x",
  "/a?b=%",
  "/a?back\\slash",
  "/a:b@c!$&'()*+,=~_-",
];
for (const target of PASS) test(`${target} passes`, () => assert.equal(checkPath(target), "ok"));

const FAULTS: readonly (readonly [string, PathFault])[] = [
  ["", "empty"],
  ["*", "not-absolute"],
  ["http://a/b", "not-absolute"],
  ["?a", "not-absolute"],
  ["/.", "dot-segment"],
  ["/..", "dot-segment"],
  ["/../", "dot-segment"],
  ["/a/./b", "dot-segment"],
  ["/a/../b", "dot-segment"],
  ["/a/..?x", "dot-segment"],
  ["/a/%2e%2e/b", "dot-segment"],
  ["/a/%2E./b", "dot-segment"],
  ["/a/.%2e", "dot-segment"],
  ["/a/%2e", "dot-segment"],
  ["/a/..;/b", "dot-segment"],
  ["/a/..;x=1/b", "dot-segment"],
  ["/a/.;/b", "dot-segment"],
  ["/a/%2e%2e%3b/b", "dot-segment"],
  ["/a/..%2fb", "dot-segment"],
  ["/a%2f..%2fb", "dot-segment"],
  ["/a%2f%2e%2e", "dot-segment"],
  ["/a%5c..%5cb", "dot-segment"],
  ["/a/..%5Cb", "dot-segment"],
  ["/a/..\\b", "dot-segment"],
  ["/a\\b", "backslash"],
  ["/a#b", "fragment"],
  ["/a?b#c", "fragment"],
  ["/a b", "forbidden-character"],
  ["/a?b c", "forbidden-character"],
  ["/a\u0000", "forbidden-character"],
  ["/a\r\nHost: x", "forbidden-character"],
  ["/a?\n", "forbidden-character"],
  ["/a\u007f", "forbidden-character"],
  ["/a%00b", "encoded-nul"],
  ["/a%", "bad-percent-encoding"],
  ["/a%2", "bad-percent-encoding"],
  ["/a%zz", "bad-percent-encoding"],
  ["/a%u002e", "bad-percent-encoding"],
  ["/%c0%ae%c0%ae/", "overlong-encoding"],
  ["/%C1%9c", "overlong-encoding"],
  ["/%e0%80%ae", "overlong-encoding"],
  ["/%f0%80%80%ae", "overlong-encoding"],
  ["/%f8%80%80%80%ae", "overlong-encoding"],
  ["/%fc%80%80%80%80%ae", "overlong-encoding"],
  ["/é", "not-ascii"],
  ["/a?é", "not-ascii"],
  ["/\u00c0\u00ae", "not-ascii"],
];
for (const [target, fault] of FAULTS) {
  test(`${JSON.stringify(target)} is refused: ${fault}`, () => assert.equal(checkPath(target), fault));
}

test("an accepted path stays below its root on servers that decode once, strip parameters, or take backslashes for slashes", () => {
  const piece = fc.constantFrom("/", ".", "..", "%2e", "%2E", "%2f", "%5C", ";", "a", ";x=1", "%3b", "\\", "//", "%25");
  const paths = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join("")}`);
  fc.assert(
    fc.property(paths, (path) => {
      fc.pre(checkPath(path) === "ok");
      for (const reading of readings(path)) {
        const segments = reading.split(/[/\\]/u);
        assert.ok(!segments.includes("..") && !segments.includes("."), `${path} is read as ${reading}`);
      }
    }),
    { numRuns: 20_000 },
  );
});

for (const [what, sent, canonical] of [
  ["letters, digits and -._~ are what they stand for", "/%61%44%6Din/%7e%2D%5f%30", "/aDmin/~-_0"],
  ["dots of a name, too", "/a%2ejs", "/a.js"],
  ["other encodings have upper-case digits", "/t%c3%A9/%e2%82%ac%20%7b", "/t%C3%A9/%E2%82%AC%20%7B"],
  ["encoded delimiters stay as sent", "/a%2fb%2Fc%3b%3B%3f%40%5c%25", "/a%2fb%2Fc%3b%3B%3f%40%5c%25"],
  ["nothing is decoded twice", "/%2561", "/%2561"],
  ["the query is the client's", "/%61?%61=%7e&%zz", "/a?%61=%7e&%zz"],
  ["a refused path stays refused", "/%61%2%35", "/%61%2%35"],
  ["nothing to do", "/plain/path?q=%41", "/plain/path?q=%41"],
] as const) {
  test(`canonical: ${what}`, () => assert.equal(canonicalTarget(sent), canonical));
}

test("canonicalisation keeps meaning and refusals, and is idempotent", () => {
  const piece = fc.constantFrom(
    "/",
    ".",
    "%2e",
    "%61",
    "a",
    "%2f",
    "%2F",
    "%c3%a9",
    "%C3",
    "%",
    "%2",
    "%00",
    "%25",
    "6",
    "?",
  );
  const targets = fc.array(piece, { maxLength: 10 }).map((pieces) => `/${pieces.join("")}`);
  fc.assert(
    fc.property(targets, (target) => {
      const canonical = canonicalTarget(target);
      assert.equal(checkPath(canonical) === "ok", checkPath(target) === "ok");
      assert.equal(canonicalTarget(canonical), canonical);
      if (checkPath(target) !== "ok") return;
      const read = (text: string): string => Buffer.from(unescaped(text.split("?")[0] ?? ""), "latin1").toString("hex");
      assert.equal(read(canonical), read(target));
    }),
    { numRuns: 20_000 },
  );
});

const unescaped = (path: string): string =>
  path.replaceAll(/%([0-9A-Fa-f]{2})/gu, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

/** Readings of a path by servers behind a gateway. */
function readings(path: string): string[] {
  const stripped = (text: string): string => text.replaceAll(/;[^/\\]*/gu, "");
  return [
    decodeURIComponent(path),
    stripped(path),
    decodeURIComponent(stripped(path)),
    stripped(decodeURIComponent(path)),
  ];
}
