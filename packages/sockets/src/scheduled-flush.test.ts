import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { scheduleFlush, type Waiting } from "./scheduled-flush.ts";

/** Records its name in a log when flushed. */
class Noted implements Waiting {
  isWaiting = false;
  readonly #name: number;
  readonly #log: number[];

  constructor(name: number, log: number[]) {
    this.#name = name;
    this.#log = log;
  }

  flush(): void {
    this.#log.push(this.#name);
  }
}

function noted(count: number, log: number[]): Noted[] {
  return Array.from({ length: count }, (_, name) => new Noted(name, log));
}

test("nobody is flushed before the end of the turn, then all are in their order", async () => {
  const log: number[] = [];
  for (const writer of noted(3, log)) scheduleFlush(writer);
  await Promise.resolve();
  assert.deepEqual(log, []);
  await turn();
  assert.deepEqual(log, [0, 1, 2]);
});

test("who asks twice in a turn is flushed once, and may ask again in the next", async () => {
  const log: number[] = [];
  const [writer] = noted(1, log);
  assert.ok(writer !== undefined);
  scheduleFlush(writer);
  scheduleFlush(writer);
  await turn();
  assert.deepEqual(log, [0]);
  scheduleFlush(writer);
  await turn();
  assert.deepEqual(log, [0, 0]);
});

test("a crowd is not held until the end of a long turn: the sixteenth flushes all that wait", async () => {
  const log: number[] = [];
  const writers = noted(20, log);
  for (const writer of writers.slice(0, 15)) scheduleFlush(writer);
  assert.equal(log.length, 0);
  for (const writer of writers.slice(15)) scheduleFlush(writer);
  assert.equal(log.length, 16);
  await turn();
  assert.deepEqual(
    log,
    writers.map((_, name) => name),
  );
});

test("who asks from inside a flush is flushed in a turn of its own", async () => {
  const log: number[] = [];
  const [later] = noted(1, log);
  assert.ok(later !== undefined);
  const first: Waiting = { isWaiting: false, flush: () => scheduleFlush(later) };
  scheduleFlush(first);
  await turn();
  await turn();
  assert.deepEqual(log, [0]);
});
