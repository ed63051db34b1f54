import assert from "node:assert/strict";
import { test } from "node:test";
import { frameBytes } from "./index.ts";

test("the examples of RFC 6455, 5.7 are written", () => {
  const hello = Buffer.from("Hello");
  assert.equal(frameBytes({ opcode: 1, payload: hello }).toString("hex"), "810548656c6c6f");
  assert.equal(frameBytes({ opcode: 1, payload: hello, mask: 0x37fa213d }).toString("hex"), "818537fa213d7f9f4d5158");
  assert.equal(frameBytes({ opcode: 1, payload: Buffer.from("Hel"), isFinal: false }).toString("hex"), "010348656c");
  assert.equal(frameBytes({ opcode: 0, payload: Buffer.from("lo") }).toString("hex"), "80026c6f");
  assert.equal(frameBytes({ opcode: 2, payload: Buffer.alloc(256) }).toString("hex", 0, 4), "827e0100");
  assert.equal(frameBytes({ opcode: 2, payload: Buffer.alloc(65_536) }).toString("hex", 0, 10), "827f0000000000010000");
  assert.equal(frameBytes({ opcode: 1, payload: hello, reserved: 4 })[0], 0xc1);
});

test("the payload that is given stays as it is", () => {
  const payload = Buffer.from("mine");
  frameBytes({ opcode: 1, payload, mask: 0xffffffff });
  assert.equal(payload.toString(), "mine");
});
