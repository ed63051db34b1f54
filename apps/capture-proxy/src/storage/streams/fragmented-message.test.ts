import assert from "node:assert/strict";
import { test } from "node:test";
import { messagesBackwards, type FrameOfMessage } from "./entry-streams.ts";

/** `>` and `<` are the two sides; `t`, `b`, `c` text, binary, continuation; a dot marks the final frame. */
function framesOf(shown: string): FrameOfMessage[] {
  return shown.split(" ").map((frame) => ({
    direction: frame.startsWith(">") ? 0 : 1,
    isFirst: frame[1] !== "c",
    isFinal: frame.endsWith("."),
    isText: frame[1] === "t",
    payload: Buffer.from(frame.slice(2).replace(/\.$/, "")),
  }));
}

const told = (shown: string): string[] =>
  [...messagesBackwards(framesOf(shown).toReversed())].map(
    ({ isText, payload }) => `${isText ? "" : "*"}${payload.toString()}`,
  );

test("frames are joined into messages, newest first (RFC 6455 section 5.4)", () => {
  for (const [name, shown, messages] of [
    ["whole messages", ">tone. <ttwo. >bthree.", ["*three", "two", "one"]],
    ["a message in three frames", ">tone >ctwo >cthree.", ["onetwothree"]],
    ["of both sides at once", ">ta <tx >cb <cy >cc. <cz.", ["xyz", "abc"]],
    ["a binary message in frames", "<ba <cb. <tc.", ["c", "*ab"]],
    ["two messages in frames, one behind the other", ">ta >cb. >tc >cd.", ["cd", "ab"]],
    ["frames without payload", ">t >ca >c.", ["a"]],
    ["a message that is not at its end yet", ">ta. >tb >cc", ["bc", "a"]],
    ["a message that has only begun", ">ta. >tb", ["b", "a"]],
    ["the beginning is missing", ">cb >cc.", ["bc"]],
    ["the beginning is missing behind another message", ">ta. >cb >cc.", ["bc", "a"]],
    ["a beginning is missing between two messages in frames", ">ta >cb. >cc. >td >ce.", ["de", "c", "ab"]],
    ["the end is missing before another message", ">ta >cb >tc >cd.", ["cd", "ab"]],
  ] as const) {
    assert.deepEqual(told(shown), messages, name);
  }
});

test("a character split between two frames is restored", () => {
  const [first, second] = [Buffer.from([0xc3]), Buffer.from([0xa4])];
  const frames = [
    { direction: 0, isFirst: false, isFinal: true, isText: false, payload: second },
    { direction: 0, isFirst: true, isFinal: false, isText: true, payload: first },
  ];
  assert.deepEqual(
    [...messagesBackwards(frames)].map(({ payload }) => payload.toString()),
    ["ä"],
  );
});
