import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyLines, headLines, jsonLines } from "./message-text.ts";

const body = { body: null, body_encoding: null } as const;

test("a head is the first line and the fields in order", () => {
  const headers_list: [string, string][] = [
    ["A", "1"],
    ["a", "2"],
  ];
  assert.deepEqual(headLines({ method: "GET", url: "http://a/", headers_list, ...body }), [
    "GET http://a/",
    "A: 1",
    "a: 2",
  ]);
  assert.deepEqual(headLines({ status_code: 204, status_message: "", headers_list: [], ...body }), ["204"]);
});

test("a UTF-8 value is decoded, and differs from the same text in Latin-1", () => {
  const headers_list: [string, string][] = [
    ["X-City", Buffer.from("grün").toString("latin1")],
    ["X-City", "gr\xfcn"],
  ];
  assert.deepEqual(headLines({ method: "GET", url: "http://a/", headers_list, ...body }).slice(1), [
    "X-City: grün (UTF-8)",
    "X-City: grün",
  ]);
});

test("JSON is indented unless parsing would change it", () => {
  const lines = (text: string) => bodyLines({ headers_list: [], body: text, body_encoding: "utf8" });
  assert.deepEqual(lines('{"a":[1]}'), ["{", '  "a": [', "    1", "  ]", "}"]);
  assert.deepEqual(lines('{"a":1.0}'), ["{", '  "a": 1.0', "}"]);
  assert.deepEqual(lines('{"a":12345678901234567890}'), ["{", '  "a": 12345678901234567890', "}"]);
  assert.deepEqual(lines('{"a":1,"a":2}'), ['{"a":1,"a":2}']);
  assert.deepEqual(lines("{no json"), ["{no json"]);
  assert.deepEqual(lines("a\r\nb\nc"), ["a", "b", "c"]);
  assert.deepEqual(bodyLines({ headers_list: [], body: null, body_encoding: null }), []);
});

test("bytes are compared as lines of base64", () => {
  const lines = bodyLines({ headers_list: [], body: "A".repeat(100), body_encoding: "base64" });
  assert.deepEqual(
    lines.map((line) => line.length),
    [76, 24],
  );
  assert.deepEqual(jsonLines(undefined), [""]);
});
