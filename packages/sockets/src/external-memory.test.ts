import assert from "node:assert/strict";
import { test } from "node:test";
import { trackExternalMemory } from "./external-memory.ts";

const READ_BYTES = 65_536;

test("buffers of reads are collected long before V8 would, however many there are", () => {
  const startBytes = process.memoryUsage().arrayBuffers;
  let peakBytes = 0;
  let last = new ArrayBuffer(0);
  for (let read = 0; read < 4096; read += 1) {
    last = new ArrayBuffer(READ_BYTES);
    trackExternalMemory(last.byteLength);
    if (read % 32 === 0) peakBytes = Math.max(peakBytes, process.memoryUsage().arrayBuffers - startBytes);
  }
  assert.equal(last.byteLength, READ_BYTES);
  assert(peakBytes < 24e6, `${peakBytes} bytes of buffers waited to be collected`);
});

test("nobody else is given V8's collector", () => {
  for (let read = 0; read < 200; read += 1) trackExternalMemory(READ_BYTES);
  assert.equal((globalThis as { gc?: unknown }).gc, undefined);
});
