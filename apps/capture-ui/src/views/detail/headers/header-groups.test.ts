import assert from "node:assert/strict";
import { test } from "node:test";
import { groupHeaders, headerLines, headerValues, headersAsText } from "./header-groups.ts";

const headers: [string, string][] = [
  ["Host", "a.example"],
  ["X-Tag", "1"],
  ["Accept", "*/*"],
  ["x-tag", "2"],
  ["Content-Security-Policy", "default-src 'none'"],
];

test("order, case and duplicates are preserved", () => {
  const lines = headerLines(headers);
  assert.deepEqual(
    lines.map(({ position, name, value, occurrences }) => [position, name, value, occurrences]),
    [
      [0, "Host", "a.example", 1],
      [1, "X-Tag", "1", 2],
      [2, "Accept", "*/*", 1],
      [3, "x-tag", "2", 2],
      [4, "Content-Security-Policy", "default-src 'none'", 1],
    ],
  );
  assert.equal(headersAsText(headers).split("\n")[3], "x-tag: 2");
});

test("search covers names and values", () => {
  assert.deepEqual(
    headerLines(headers, "EXAMPLE").map((line) => line.name),
    ["Host"],
  );
  assert.deepEqual(
    headerLines(headers, "tag").map((line) => line.value),
    ["1", "2"],
  );
});

test("UTF-8 values are shown in both decodings, and found by either", () => {
  const octets = (text: string): string => Buffer.from(text).toString("latin1");
  const named: [string, string][] = [
    ["X-City", octets("grün")],
    ["X-Latin", "gr\xfcn"],
    ["X-Plain", "green"],
  ];
  assert.deepEqual(
    headerLines(named).map(({ value, reading }) => [value, reading]),
    [
      ["gr\xc3\xbcn", "grün"],
      ["gr\xfcn", undefined],
      ["green", undefined],
    ],
  );
  const found = (search: string): readonly string[] => headerLines(named, search).map(({ name }) => name);
  assert.deepEqual([found("grün"), found(octets("grün"))], [["X-City", "X-Latin"], ["X-City"]]);
  assert.equal(headersAsText(named).split("\n")[0], "X-City: gr\xc3\xbcn");
});

test("each field is in exactly one group, and groups keep the wire order", () => {
  const groups = groupHeaders(headerLines(headers));
  assert.deepEqual(
    groups.map(({ title, lines }) => [title, lines.map((line) => line.name)]),
    [
      ["Request and routing", ["Host"]],
      ["Content", ["Accept"]],
      ["Security", ["Content-Security-Policy"]],
      ["Other", ["X-Tag", "x-tag"]],
    ],
  );
});

test("values are found by name in any case", () => {
  assert.deepEqual(headerValues(headers, "x-tag"), ["1", "2"]);
  assert.deepEqual(headerValues(headers, "cookie"), []);
});
