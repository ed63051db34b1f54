import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { existsSync, readFileSync, watch } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fixtureTree } from "./fixture-tree.ts";
import { runServices } from "./services.ts";
import type { Service } from "./services.ts";

/**
 * A service that marks its start in a file, adds each signal to it, and ends with 7 after the number of signals given as
 * second argument. It listens on nothing; a timer keeps it alive, at most a minute.
 */
const WAITING = `
import { appendFileSync } from "node:fs";
const [mark, wanted = "1"] = process.argv.slice(2);
let seen = 0;
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    appendFileSync(mark, signal + "\\n");
    if (++seen === Number(wanted)) process.exit(7);
  });
}
setTimeout(() => process.exit(99), 60_000);
appendFileSync(mark, "started\\n");
`;

const ENDING = "process.exitCode = Number(process.argv[2]);";

function tree(): ReturnType<typeof fixtureTree> {
  return fixtureTree({
    "waiting.mjs": WAITING,
    "ending.mjs": ENDING,
    "killed.mjs": 'process.kill(process.pid, "SIGKILL");',
  });
}

/** Resolves as soon as a file in the folder has the text. */
async function written(root: string, name: string, text: string): Promise<void> {
  const path = join(root, name);
  const isThere = (): boolean => existsSync(path) && readFileSync(path, "utf8").includes(text);
  await new Promise<void>((resolve) => {
    const watcher = watch(root, () => {
      if (!isThere()) return;
      watcher.close();
      resolve();
    });
    if (isThere()) {
      watcher.close();
      resolve();
    }
  });
}

const service = (root: string, script: string, ...args: string[]): Service => {
  return { name: script, entry: join(root, `${script}.mjs`), args };
};

describe("the exit code", () => {
  test("is the service's own", async () => {
    using fixture = tree();
    assert.equal(await runServices([service(fixture.root, "ending", "0")], new EventEmitter()), 0);
    assert.equal(await runServices([service(fixture.root, "ending", "3")], new EventEmitter()), 3);
  });

  test("is 128 and the signal's number for a service that was killed", async () => {
    using fixture = tree();
    assert.equal(await runServices([service(fixture.root, "killed")], new EventEmitter()), 137);
  });

  test("is that of the first to end, after the others were terminated", async () => {
    using fixture = tree();
    const mark = join(fixture.root, "mark");
    const signals = new EventEmitter();
    const ended = runServices(
      [service(fixture.root, "waiting", mark), service(fixture.root, "waiting", `${mark}2`)],
      signals,
    );
    await Promise.all([written(fixture.root, "mark", "started"), written(fixture.root, "mark2", "started")]);
    signals.emit("SIGINT");
    assert.equal(await ended, 7);
    const early = await runServices(
      [service(fixture.root, "ending", "4"), service(fixture.root, "waiting", `${mark}3`)],
      signals,
    );
    assert.equal(early, 4);
  });
});

describe("signals", () => {
  test("are forwarded, a hang-up as SIGTERM", async () => {
    for (const [sent, received] of [
      ["SIGINT", "SIGINT"],
      ["SIGTERM", "SIGTERM"],
      ["SIGHUP", "SIGTERM"],
      ["SIGQUIT", "SIGTERM"],
    ] as const) {
      using fixture = tree();
      const signals = new EventEmitter();
      const ended = runServices([service(fixture.root, "waiting", join(fixture.root, "mark"))], signals);
      await written(fixture.root, "mark", "started");
      signals.emit(sent);
      assert.equal(await ended, 7);
      assert.equal(readFileSync(join(fixture.root, "mark"), "utf8"), `started\n${received}\n`);
    }
  });

  test("that arrive together count as one key press; a later one is another", async (context) => {
    using fixture = tree();
    const signals = new EventEmitter();
    let nowMs = 10_000;
    context.mock.method(performance, "now", () => nowMs);
    const ended = runServices([service(fixture.root, "waiting", join(fixture.root, "mark"), "2")], signals);
    await written(fixture.root, "mark", "started");
    signals.emit("SIGINT");
    signals.emit("SIGTERM");
    await written(fixture.root, "mark", "SIGINT");
    nowMs += 1_000;
    signals.emit("SIGINT");
    assert.equal(await ended, 7);
    assert.equal(readFileSync(join(fixture.root, "mark"), "utf8"), "started\nSIGINT\nSIGINT\n");
  });

  test("are no longer handled after all services have ended", async () => {
    using fixture = tree();
    const signals = new EventEmitter();
    await runServices([service(fixture.root, "ending", "0")], signals);
    assert.deepEqual(signals.eventNames(), []);
  });
});

test("an announcement is printed once, after the text it waits for", async (context) => {
  using fixture = fixtureTree({
    "saying.mjs": `
const said = ["not yet", "ready now", "ready again"];
const next = () => said.length > 0 && process.stderr.write(said.shift() + "\\n", () => setTimeout(next, 50));
next();`,
  });
  const words: string[] = [];
  context.mock.method(process.stderr, "write", (piece: Uint8Array | string) => words.push(String(piece)) > 0);
  const announcement = { after: /^ready/mu, text: "try this\n" };
  assert.equal(await runServices([{ ...service(fixture.root, "saying"), announcement }], new EventEmitter()), 0);
  // The number of chunks depends on the system.
  assert.match(words.join(""), /^not yet\nready now\n(ready again\n)?try this\n(ready again\n)?$/u);
});

test("an entry that does not exist fails", async () => {
  assert.equal(await runServices([{ name: "none", entry: "/nonexistent/main.mjs", args: [] }], new EventEmitter()), 1);
});
