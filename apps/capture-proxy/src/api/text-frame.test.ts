import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { textFrames } from "./text-frame.ts";

test("frames of every length class are read back as they were written", () => {
  for (const length of [0, 1, 125, 126, 127, 65_535, 65_536, 100_000]) {
    const text = "x".repeat(length);
    const frames = textFrames([text]);
    assert.equal(frames.length - length, length < 126 ? 2 : length < 65_536 ? 4 : 10);
    assert.equal(frames.subarray(frames.length - length).toString(), text);
  }
});

test("any texts one after the other come out one by one", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "grapheme", maxLength: 300 }), { minLength: 1, maxLength: 5 }), (texts) => {
      const frames = textFrames(texts);
      let at = 0;
      for (const text of texts) {
        const short = frames[at + 1] ?? 0;
        const head = short === 126 ? 4 : 2;
        const length = short === 126 ? frames.readUInt16BE(at + 2) : short;
        assert.equal(frames[at], 0x81);
        assert.equal(frames.subarray(at + head, at + head + length).toString(), text);
        at += head + length;
      }
      assert.equal(at, frames.length);
    }),
  );
});
