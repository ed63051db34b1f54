import assert from "node:assert/strict";
import { test } from "node:test";
import { BufferBudget, trackExternalMemory } from "./memory.ts";

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

test("V8's collector is not exposed elsewhere", () => {
  for (let read = 0; read < 200; read += 1) trackExternalMemory(READ_BYTES);
  assert.equal((globalThis as { gc?: unknown }).gc, undefined);
});

test("a budget grants what it has, and nothing of a larger request", () => {
  const budget = new BufferBudget(100);
  assert.equal(budget.reserve(60), true);
  assert.equal(budget.reserve(41), false);
  assert.equal(budget.usedBytes, 60);
  assert.equal(budget.reserve(40), true);
  budget.release(60);
  assert.equal(budget.usedBytes, 40);
});

test("a smaller bound leaves what waits alone and takes nothing more until there is room", () => {
  const budget = new BufferBudget(100);
  assert.equal(budget.reserve(80), true);
  budget.setMaxBytes(50);
  assert.equal(budget.reserve(1), false);
  budget.release(80);
  assert.equal(budget.reserve(50), true);
});
