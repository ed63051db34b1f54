import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";
import { mirrorPath, otherName } from "./mirror-path.ts";

const JSON_TYPE = "application/json; charset=utf-8";

function placed(host: string, path: string, contentType?: string): string {
  const { directories, file } = mirrorPath(host, path, contentType);
  return [...directories, file].join("/");
}

test("a body stands under its host and path; the query is left out, and directories get an index", () => {
  const cases: readonly (readonly [path: string, type: string | undefined, expected: string])[] = [
    ["/", "text/html", "a.test/index.html"],
    ["/", JSON_TYPE, "a.test/index.json"],
    ["/app.js", "text/javascript", "a.test/app.js"],
    ["/app.js?v=1&x=../../y", "text/javascript", "a.test/app.js"],
    ["/a/b/", "text/html", "a.test/a/b/index.html"],
    ["/api/users", JSON_TYPE, "a.test/api/users/index.json"],
    ["/api/users", "application/problem+json", "a.test/api/users/index.json"],
    ["/api/users", undefined, "a.test/api/users/index.html"],
    ["/api/users.json?page=2", JSON_TYPE, "a.test/api/users.json"],
    ["/.gitignore", "text/plain", "a.test/.gitignore/index.html"],
    ["//a//b.txt", "text/plain", "a.test/a/b.txt"],
    ["/my%20file.txt", "text/plain", "a.test/my file.txt"],
    ["/caf%C3%A9.html", "text/html", "a.test/café.html"],
    ["/caf\u00c3\u00a9.html", "text/html", "a.test/café.html"],
    ["*", "text/plain", "a.test/%2A/index.html"],
  ];
  for (const [path, type, expected] of cases) assert.equal(placed("a.test", path, type), expected, path);
});

test("dots, separators and NUL are dropped in every spelling, and nothing leads out", () => {
  const cases: readonly (readonly [path: string, expected: string])[] = [
    ["/../../etc/passwd.txt", "a.test/etc/passwd.txt"],
    ["/%2e%2e/%2E%2E/x.txt", "a.test/x.txt"],
    ["/..%2f..%2fx.txt", "a.test/x.txt"],
    ["/..%5c..%5Cx.txt", "a.test/x.txt"],
    ["/..\\..\\x.txt", "a.test/x.txt"],
    ["/.%00./x.txt", "a.test/x.txt"],
    ["/a%00b.txt", "a.test/ab.txt"],
    ["/./x.txt", "a.test/x.txt"],
    ["/a..b.txt", "a.test/ab.txt"],
    ["/.../x.txt", "a.test/x.txt"],
    ["/x/..", "a.test/x/index.html"],
    ["/%252e%252e/x.txt", "a.test/%252e%252e/x.txt"],
    ["/%c0%ae%c0%ae/x.txt", "a.test/%C0%AE%C0%AE/x.txt"],
    ["/%2fetc%2fpasswd.txt", "a.test/etcpasswd.txt"],
    ["/C:%5Cwindows.txt", "a.test/C%3Awindows.txt"],
  ];
  for (const [path, expected] of cases) assert.equal(placed("a.test", path), expected, path);
});

test("names that a system keeps for itself, or cannot hold, are escaped", () => {
  const cases: readonly (readonly [path: string, expected: string])[] = [
    ["/con.txt", "a.test/%63on.txt"],
    ["/NUL.js", "a.test/%4EUL.js"],
    ["/com1/x.js", "a.test/%63om1/x.js"],
    ["/lpt%C2%B9.txt", "a.test/%6Cpt¹.txt"],
    ["/console.js", "a.test/console.js"],
    ["/x.txt%20", "a.test/x.txt%20"],
    ["/dir./x.txt", "a.test/dir%2E/x.txt"],
    ["/a%0ab%1b.txt", "a.test/a%0Ab%1B.txt"],
    ["/a%3Ab%7C%2A%3F.txt", "a.test/a%3Ab%7C%2A%3F.txt"],
    ["/%E2%80%AEgpj.exe", "a.test/%E2%80%AEgpj.exe"],
    ["/app.js.meta.json", "a.test/app.js.%6Deta.json"],
    ["/app.js.META.JSON", "a.test/app.js.%4DETA.JSON"],
    ["/app.js.request", "a.test/app.js.%72equest"],
    ["/.weir-tmp/x.js", "a.test/%2Eweir-tmp/x.js"],
    ["/100%.txt", "a.test/100%25.txt"],
    ["/cafe%CC%81.txt", "a.test/cafe%CC%81.txt"],
    ["/%ff.txt", "a.test/%FF.txt"],
  ];
  for (const [path, expected] of cases) assert.equal(placed("a.test", path), expected, path);
});

test("a host is one directory, whatever it is", () => {
  assert.equal(placed("::1", "/x.js"), "[__1]/x.js");
  assert.equal(placed("[fe80::1%25eth0]", "/x.js"), "[fe80__1%25eth0]/x.js");
  assert.equal(placed("..", "/x.js"), "%2E/x.js");
  assert.equal(placed("a/../../b", "/x.js"), "ab/x.js");
  assert.equal(placed(".weir-tmp", "/x.js"), "%2Eweir-tmp/x.js");
  assert.equal(placed("con", "/x.js"), "%63on/x.js");
});

test("long names and deep paths are shortened and still told apart", () => {
  const long = (last: string): string => `/${"n".repeat(400)}${last}.json`;
  assert.notEqual(placed("a.test", long("a")), placed("a.test", long("b")));
  assert.match(placed("a.test", long("a")), /~[0-9a-f]{16}\.json$/);
  const deep = (last: string): string => `/${"abc/".repeat(2000)}${last}/x.js`;
  assert.notEqual(placed("a.test", deep("a")), placed("a.test", deep("b")));
  assert.ok(Buffer.byteLength(placed("a.test", deep("a"))) < 2400);
  assert.equal(otherName("app.js", "dir"), "app~dir.js");
});

/** Parts of hostile paths, besides arbitrary text. */
const hostile = fc.oneof(
  fc.constantFrom(
    "..",
    ".",
    "/",
    "\\",
    "%2e",
    "%2E",
    "%2f",
    "%5c",
    "%00",
    "\0",
    "%",
    "%25",
    " ",
    "~",
    "con",
    ".meta.json",
  ),
  fc.constantFrom(
    ".request",
    ".weir-",
    "\u202e",
    "é",
    "e\u0301",
    "%c0%af",
    "\ud800",
    "index.html",
    "a".repeat(300),
    "?",
    "#",
  ),
  fc.string(),
  fc.string({ unit: anyCharacter }),
);

test("whatever host and path, every name is one that can be created, and none leads out", () => {
  const text = fc.array(hostile, { maxLength: 12 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(text, text, fc.constantFrom(undefined, JSON_TYPE, "text/html"), (host, path, type) => {
      const { directories, file } = mirrorPath(host, path, type);
      assert.ok(directories.length > 0 && directories.length <= 102);
      for (const name of [...directories, file]) {
        assert.notEqual(name, "");
        assert.ok(!name.includes(".."), name);
        assert.doesNotMatch(name, /[/\\\0-\x1f\x7f<>:"|?*]|[. ]$/u);
        assert.ok(Buffer.byteLength(name) <= 222, name);
        assert.doesNotMatch(name, /\.meta\.json$|\.request$|^\.weir-/iu);
        assert.equal(name.normalize("NFC"), name);
      }
    }),
    { numRuns: 2000 },
  );
});

test("different paths of harmless and escaped characters never share a file", () => {
  const part = fc
    .array(fc.constantFrom("a", "B", "%41", "%2541", "%25", "%", "é", ".js", "~", "%0A", "%3A", "con", ".meta.json"), {
      minLength: 1,
      maxLength: 5,
    })
    .map((pieces) => pieces.join(""));
  const meaning = (path: string): string =>
    path
      .replace(/%([0-9a-f]{2})/gi, (_, digits: string) => `\x01${String.fromCharCode(Number.parseInt(digits, 16))}`)
      .replaceAll("\x01", "");
  fc.assert(
    fc.property(part, part, (one, other) => {
      // Two spellings of one path share a file; "é" is one character of UTF-8 here.
      fc.pre(meaning(one) !== meaning(other) && !one.includes("..") && !other.includes(".."));
      assert.notEqual(placed("a.test", `/${one}`), placed("a.test", `/${other}`));
    }),
    { numRuns: 2000 },
  );
});
