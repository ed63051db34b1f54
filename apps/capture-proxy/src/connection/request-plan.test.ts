import assert from "node:assert/strict";
import { test } from "node:test";
import { processorMs } from "@headworks/testkit";
import { parseAbsoluteTarget, parseConnectTarget, shownTarget } from "./request-plan.ts";

const GOOD: readonly [string, object][] = [
  ["http://a.example", { scheme: "http", host: "a.example", port: 80, path: "/", authority: "a.example" }],
  [
    "HTTP://A.Example:8080/x?y=1",
    { scheme: "http", host: "a.example", port: 8080, path: "/x?y=1", authority: "A.Example:8080" },
  ],
  ["https://a.example/", { scheme: "https", host: "a.example", port: 443, path: "/", authority: "a.example" }],
  ["http://[::1]:81?q", { scheme: "http", host: "::1", port: 81, path: "/?q", authority: "[::1]:81" }],
  ["http://a.example:/x", { scheme: "http", host: "a.example", port: 80, path: "/x", authority: "a.example" }],
  [
    "http://user:p%40ss@h.example/p#frag",
    { scheme: "http", host: "h.example", port: 80, path: "/p", authority: "h.example" },
  ],
];
for (const [target, expected] of GOOD) {
  test(`the target ${target} is parsed`, () => assert.deepEqual(parseAbsoluteTarget(target, "GET"), expected));
}

test("OPTIONS without a path addresses the whole server", () => {
  const target = parseAbsoluteTarget("http://a.example", "OPTIONS");
  assert.equal(typeof target === "object" && target.path, "*");
});

for (const target of [
  "/",
  "ftp://x/",
  "http://",
  "http://x:0/",
  "http://x:70000/",
  "http://a b/",
  "http://[::1/",
  "x:80",
]) {
  test(`the target ${target} is refused with a sentence`, () => {
    const result = parseAbsoluteTarget(target, "GET");
    assert.equal(typeof result, "string");
    assert.ok((result as string).length > 15);
  });
}

test("CONNECT requires a host and a port", () => {
  assert.deepEqual(parseConnectTarget("A.Example:443"), { host: "a.example", port: 443 });
  assert.deepEqual(parseConnectTarget("[::1]:443"), { host: "::1", port: 443 });
  for (const bad of ["a.example", "a.example:", ":443", "a.example:0", "::1:443", "u@a.example:443"]) {
    assert.equal(typeof parseConnectTarget(bad), "string", bad);
  }
});

const SHOWN: readonly [target: string, shown: object | undefined][] = [
  ["nohost", { scheme: "tcp", host: "nohost", port: 0, path: "/" }],
  ["localhost:99999", { scheme: "tcp", host: "localhost", port: 0, path: "/" }],
  ["http://h:65536/a?b#c", { scheme: "http", host: "h", port: 0, path: "/a?b" }],
  ["http://h:x", { scheme: "http", host: "h", port: 0, path: "/" }],
  ["ftp://u:p@H/x", { scheme: "tcp", host: "h", port: 0, path: "/x" }],
  ["ws://[::1]", { scheme: "ws", host: "::1", port: 80, path: "/" }],
  ["wss://h:444?q", { scheme: "wss", host: "h", port: 444, path: "/?q" }],
  ["ftp://", undefined],
  ["/path", undefined],
  ["a:b:c", undefined],
  ["http://a b/", undefined],
];
for (const [target, shown] of SHOWN) {
  test(`the entry of the refused target ${target} shows its parts`, () => {
    assert.deepEqual(shownTarget(target), shown);
  });
}

test("a refused target of maximum length is parsed in linear time", () => {
  const targets = [":", "a:", "@", "a.", "http://", "a#?/"].map((piece) => piece.repeat(65_536 / piece.length));
  const spentMs = processorMs(() => targets.forEach((target) => shownTarget(target)));
  assert.ok(spentMs < 500, `${spentMs} ms`);
});
