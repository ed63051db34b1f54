import assert from "node:assert/strict";
import { test } from "node:test";
import { beginsAsHttp2, PREFACE } from "./preface.ts";

test("RFC 9113, 3.4: the preface is known by all of its bytes, and what differs in one of them is something else", () => {
  assert.equal(beginsAsHttp2(PREFACE), "yes");
  assert.equal(beginsAsHttp2(Buffer.concat([PREFACE, Buffer.from("x")])), "yes");
  for (let at = 0; at < PREFACE.length; at += 1) {
    assert.equal(beginsAsHttp2(PREFACE.subarray(0, at)), "maybe", `${at} bytes`);
    const other = Buffer.from(PREFACE);
    other[at] = (other[at] ?? 0) ^ 1;
    assert.equal(beginsAsHttp2(other), "no", `byte ${at}`);
    assert.equal(beginsAsHttp2(other.subarray(0, at + 1)), "no", `the first ${at + 1} bytes`);
  }
  for (const text of ["POST / HTTP/1.1", "PUT /", "PRIVATE /", "GET /"]) {
    assert.equal(beginsAsHttp2(Buffer.from(text)), "no", text);
  }
});
