import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { closePayload, closeText, isSendableCloseCode, readClose } from "./index.ts";

test("close frames are parsed with their problems", () => {
  const table: readonly [Buffer, number | undefined, string, RegExp | undefined][] = [
    [Buffer.alloc(0), undefined, "", undefined],
    [Buffer.from([3]), undefined, "", /half a code/],
    [closePayload(1000, ""), 1000, "", undefined],
    [closePayload(1000, "Tschüß"), 1000, "Tschüß", undefined],
    [closePayload(1005, ""), 1005, "", /1005 must not be sent/],
    [closePayload(65_535, ""), 65_535, "", /65535 must not be sent/],
    [Buffer.from([3, 0xe8, 0xff]), 1000, "\u{FFFD}", /not UTF-8/],
  ];
  for (const [payload, code, reason, problem] of table) {
    const facts = readClose(payload);
    assert.deepEqual([facts.code, facts.reason], [code, reason]);
    if (problem === undefined) assert.equal(facts.problem, undefined);
    else assert.match(facts.problem ?? "", problem);
  }
});

test("only defined codes and those for applications may be sent", () => {
  const allowed = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999];
  const refused = [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535];
  for (const code of allowed) assert.equal(isSendableCloseCode(code), true, String(code));
  for (const code of refused) assert.equal(isSendableCloseCode(code), false, String(code));
});

test("a reason of any length fits into a control frame and stays UTF-8", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (reason) => {
      const payload = closePayload(4000, reason);
      assert.ok(payload.length <= 125);
      const facts = readClose(payload);
      assert.equal(facts.problem, undefined);
      assert.ok(reason.isWellFormed() ? reason.startsWith(facts.reason) : true);
    }),
  );
});

test("a close frame is one line of code, name and reason", () => {
  const close = (code: number, reason: string | Buffer = ""): Buffer => {
    const head = Buffer.alloc(2);
    head.writeUInt16BE(code);
    return Buffer.concat([head, Buffer.from(reason)]);
  };
  const table: readonly (readonly [Buffer, string])[] = [
    [close(1000, "bye"), "1000 Normal Closure: bye"],
    [close(1001), "1001 Going Away"],
    [close(4321, "grüße"), "4321: grüße"],
    [close(1006), "1006 Abnormal Closure"],
    [close(1000, Buffer.of(0x61, 0xff)), "1000 Normal Closure: a\u{FFFD}"],
    [Buffer.alloc(0), "no code"],
    [Buffer.of(3), "half a code"],
  ];
  for (const [payload, text] of table) assert.equal(closeText(payload), text);
});
