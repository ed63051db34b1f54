import assert from "node:assert/strict";
import { closeSync, openSync, writeSync } from "node:fs";
import { describe, mock, test } from "node:test";
import { DescriptorLines } from "./descriptor-lines.ts";

type Done = (error: NodeJS.ErrnoException | null, written: number) => void;

/** A descriptor with simulated results. */
class FakeDescriptor {
  text = "";
  /** Results of the next writes: an error code or the number of bytes written; by default all. */
  readonly outcomes: (string | number)[] = [];
  readonly problems: string[] = [];
  readonly recovered: number[] = [];
  #pending: (() => void)[] = [];
  readonly lines = new DescriptorLines({
    descriptor: 1,
    onProblem: ({ code }) => this.problems.push(code ?? ""),
    onRecovered: (lost) => this.recovered.push(lost),
    calls: {
      write: (_descriptor, bytes, done: Done) =>
        void this.#pending.push(() => {
          try {
            done(null, this.#take(bytes));
          } catch (error) {
            done(error as NodeJS.ErrnoException, 0);
          }
        }),
      writeSync: (_descriptor, bytes) => this.#take(bytes),
    },
  });

  /** Completes the pending writes and those that follow from them. */
  settle(): void {
    for (let next = this.#pending.shift(); next !== undefined; next = this.#pending.shift()) next();
  }

  get writesUnderWay(): number {
    return this.#pending.length;
  }

  #take(bytes: Buffer): number {
    const outcome = this.outcomes.shift();
    if (typeof outcome === "string") throw Object.assign(new Error(outcome), { code: outcome });
    const written = Math.min(outcome ?? bytes.length, bytes.length);
    this.text += bytes.subarray(0, written).toString();
    return written;
  }
}

test("lines come out in their order, one write at a time, however few bytes each takes", () => {
  const fake = new FakeDescriptor();
  const lines = Array.from({ length: 5000 }, (_, at) => `line ${at} ü\n`);
  fake.outcomes.push(1, 2, 0, 7, 30_000);
  for (const line of lines) {
    fake.lines.write(line);
    assert.equal(fake.writesUnderWay, 1);
  }
  fake.settle();
  assert.equal(fake.text, lines.join(""));
});

describe("a descriptor that is in trouble", () => {
  test("is tried again every second, and nothing that waits is lost: said once, and so is the end of it", () => {
    mock.timers.enable({ apis: ["setTimeout"] });
    try {
      const fake = new FakeDescriptor();
      fake.outcomes.push("ENOSPC", "ENOSPC", 3, "ENOSPC");
      fake.lines.write("first\n");
      fake.settle();
      fake.lines.write("second\n");
      assert.equal(fake.writesUnderWay, 0, "a line does not bring about another try");
      mock.timers.tick(999);
      assert.equal(fake.writesUnderWay, 0);
      mock.timers.tick(1);
      fake.settle();
      assert.deepEqual([fake.problems, fake.recovered], [["ENOSPC"], []]);
      mock.timers.tick(1000);
      fake.settle();
      assert.deepEqual([fake.problems, fake.recovered, fake.text], [["ENOSPC", "ENOSPC"], [0], "fir"]);
      mock.timers.tick(1000);
      fake.settle();
      assert.deepEqual([fake.recovered, fake.text], [[0, 0], "first\nsecond\n"]);
    } finally {
      mock.timers.reset();
    }
  });

  test("holds four million characters, and tells how many lines found no room", () => {
    mock.timers.enable({ apis: ["setTimeout"] });
    try {
      const fake = new FakeDescriptor();
      fake.outcomes.push("EDQUOT");
      fake.lines.write("begun\n");
      fake.settle();
      const line = `${"x".repeat(1023)}\n`;
      for (let at = 0; at < 5000; at += 1) fake.lines.write(line);
      mock.timers.tick(1000);
      fake.settle();
      assert.deepEqual(fake.recovered, [5000 - 4096]);
      assert.equal(fake.text.length, 6 + 4096 * 1024);
    } finally {
      mock.timers.reset();
    }
  });

  test("keeps no process from ending", () => {
    for (const code of ["ENOSPC", "EIO", "EPIPE"]) {
      const fake = new FakeDescriptor();
      fake.outcomes.push(code, code);
      fake.lines.write("a\n");
      fake.settle();
      fake.lines.write("b\n");
      fake.lines.flushSync();
      assert.equal(fake.text, "");
    }
  });
});

test("lines of a reader that is gone are discarded silently", () => {
  for (const code of ["EPIPE", "EIO"]) {
    const fake = new FakeDescriptor();
    fake.outcomes.push(code);
    fake.lines.write("a\n");
    fake.settle();
    fake.lines.write("b\n");
    fake.lines.flushSync();
    assert.deepEqual([fake.text, fake.problems, fake.writesUnderWay], ["", [], 0], code);
  }
});

test("a pipe that is full is offered the rest until it takes it, at the end of the process, too", () => {
  const fake = new FakeDescriptor();
  fake.outcomes.push("EAGAIN", "EAGAIN", 2);
  fake.lines.write("ab\ncd\n");
  fake.settle();
  fake.lines.flushSync();
  assert.deepEqual([fake.text, fake.problems], ["ab\ncd\n", []]);
});

test("at the end of the process what a write is under way with is not written twice", () => {
  const fake = new FakeDescriptor();
  fake.lines.write("a\n");
  fake.lines.flushSync();
  assert.equal(fake.text, "");
  fake.settle();
  assert.equal(fake.text, "a\n");
});

test(
  "a device that is always full is reported, and delays nothing",
  { skip: process.platform !== "linux" },
  async () => {
    const descriptor = openSync("/dev/full", "w");
    try {
      assert.throws(() => writeSync(descriptor, "x"), { code: "ENOSPC" });
      const problem = Promise.withResolvers<string>();
      const lines = new DescriptorLines({
        descriptor,
        onProblem: ({ code }) => problem.resolve(code ?? ""),
        onRecovered: () => undefined,
      });
      lines.write("a\n");
      assert.equal(await problem.promise, "ENOSPC");
      lines.write("b\n");
      lines.flushSync();
    } finally {
      closeSync(descriptor);
    }
  },
);
