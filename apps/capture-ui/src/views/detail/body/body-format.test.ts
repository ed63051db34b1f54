import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { KIND_VIEWS, detectBody, needsConversion } from "./body-format.ts";

const bytes = (text: string) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

test("the kind follows the declared type, unless the bytes contradict it", () => {
  for (const [type, body, kind] of [
    ["application/json; charset=utf-8", '{"a":1}', "json"],
    ["application/problem+json", "{}", "json"],
    ["application/x-ndjson", '{"a":1}\n', "json"],
    ["application/atom+xml", "<feed>", "xml"],
    ["text/html", "<p>x", "html"],
    ["application/xhtml+xml", "<html>", "html"],
    ["text/css", "a{}", "css"],
    ["text/javascript", "{}", "javascript"],
    ["application/javascript", "x", "javascript"],
    ["image/svg+xml", "<svg>", "svg"],
    ["image/png", "\x89PNG\r\n\x1a\n", "image"],
    ["image/jpeg", "\x89PNG\r\n\x1a\n", "image"],
    ["application/octet-stream", "\xff\xd8\xff\xe0", "image"],
    ["video/mp4", "\0\0\0\x18ftypmp42", "video"],
    ["audio/mpeg", "ID3\x04", "audio"],
    ["application/x-www-form-urlencoded", "a=1&b=2", "form"],
    ["multipart/form-data; boundary=x", "--x", "multipart"],
    ["text/plain", '{"a": 1}', "json"],
    ["text/plain", "hello", "text"],
    ["text/csv", "{x,y", "text"],
    [null, "<!DOCTYPE html><p>", "html"],
    [null, '[{"a":1}]', "json"],
    [null, "<?xml version='1.0'?>", "xml"],
    [null, "plain", "text"],
    [null, "a\0b", "binary"],
    ["application/json", "\0\x01\x02", "binary"],
    ["application/grpc", "\0\0\0\0\x05hello", "binary"],
    ["application/pdf", "%PDF-1.4\0", "binary"],
    ["text/plain", "BM is a car maker", "text"],
    ["not a type", "{}", "json"],
    ["application/json", "", "empty"],
    ["text/html; charset=iso-8859-1", "<p>caf\xe9", "html"],
    ["text/plain", "\xff\xfeh\0i\0", "text"],
    [null, "caf\xe9", "binary"],
  ] as const) {
    assert.equal(detectBody(type, bytes(body)).kind, kind, `${type} ${JSON.stringify(body)}`);
  }
});

test("text declared as UTF-16 needs no byte order mark", () => {
  const utf16 = (text: string) => new Uint8Array(Buffer.from(text, "utf16le"));
  for (const [type, body, kind] of [
    ["text/plain; charset=utf-16le", utf16("hello é 日本"), "text"],
    ["text/plain; charset=UTF-16", utf16('{"a": 1}'), "json"],
    ["text/plain; charset=utf-16be", utf16("hello").map((_, index, all) => all[index ^ 1] ?? 0), "text"],
    ["application/json; charset=utf-16le", utf16('{"a":1}'), "json"],
    ["application/x-www-form-urlencoded; charset=utf-16le", utf16("a=1"), "form"],
    // The byte order mark overrides the declaration.
    ["text/plain; charset=utf-16", bytes("\xfe\xff\x01\0"), "text"],
    // A prefix may end inside a character.
    ["text/plain; charset=utf-16le", utf16("😀".repeat(1000)).subarray(0, 1003), "text"],
    ["text/plain; charset=utf-16le", utf16("a\x01b"), "binary"],
    ["text/plain; charset=utf-16le", utf16("\ud800a"), "binary"],
    ["text/plain; charset=none", utf16("hello"), "binary"],
    ["image/png; charset=utf-16le", bytes("\x89PNG\r\n\x1a\n"), "image"],
  ] as const) {
    assert.equal(detectBody(type, body).kind, kind, type);
  }
});

test("detection never fails, and every kind except empty has a view", () => {
  fc.assert(
    fc.property(fc.option(fc.string()), fc.uint8Array({ maxLength: 64 }), (type, prefix) => {
      const { kind } = detectBody(type, prefix);
      assert.equal(KIND_VIEWS[kind].length > 0, prefix.length > 0);
    }),
  );
});

test("a text is converted if its charset is not UTF-8", () => {
  assert.equal(needsConversion("text/plain; charset=UTF-8", bytes("x")), false);
  assert.equal(needsConversion("text/plain", bytes("x")), false);
  assert.equal(needsConversion("text/plain; charset=shift_jis", bytes("x")), true);
  assert.equal(needsConversion("text/plain", bytes("caf\xe9")), true);
});
