import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Settings } from "@headworks/capture-contract";
import { FakeClock, temporaryDirectory } from "@headworks/testkit";
import { pino } from "pino";
import { openLogOutput } from "./log-output.ts";
import type { LogDestination, LogOutputOptions } from "./log-output.ts";

type LogSettings = Settings["log_config"];

const DEFAULTS: LogSettings = {
  enabled: true,
  rotation: { mode: "daily" },
  max_files: 7,
  max_file_size_mb: 100,
  json_format: false,
  async_writing: true,
  async_mode: "drop_newest",
  async_buffer_size: 1000,
};

interface Rig extends AsyncDisposable {
  readonly output: LogDestination;
  readonly log: pino.Logger;
  readonly dataDir: string;
  readonly shown: string[];
  readonly complaints: string[];
  readonly file: () => string;
}

async function open(options: Partial<LogOutputOptions> = {}, before?: (dataDir: string) => void): Promise<Rig> {
  const directory = await temporaryDirectory();
  before?.(directory.path);
  const shown: string[] = [];
  const complaints: string[] = [];
  const output = openLogOutput({
    path: directory.file("logs", "weir.log"),
    stream: { write: (line) => shown.push(line), flushSync: () => undefined },
    hasColours: false,
    isJson: false,
    hasFile: true,
    clock: new FakeClock(),
    complain: (sentence) => complaints.push(sentence),
    ...options,
  });
  return {
    output,
    log: pino({ base: null, level: "trace" }, output),
    dataDir: directory.path,
    shown,
    complaints,
    file: () => readFileSync(output.path, "utf8"),
    [Symbol.asyncDispose]: async () => {
      await output.close();
      await directory.remove();
    },
  };
}

test("every line goes to the stream and to the file, those from before the settings and the file included", async () => {
  await using rig = await open();
  rig.log.info("one");
  assert.deepEqual(rig.shown, [], "its form is not known yet");
  rig.output.begin(DEFAULTS);
  rig.log.warn({ a: 1 }, "two");
  assert.equal(existsSync(rig.output.path), false);
  rig.output.openFile(DEFAULTS);
  rig.log.error("three");
  await rig.output.settled();
  assert.equal(rig.file(), rig.shown.join(""));
  assert.match(rig.file(), /INFO {2}one\n.*WARN {2}two a=1\n.*ERROR three\n$/);
});

test("colours are for the terminal alone", async () => {
  await using rig = await open({ hasColours: true });
  rig.output.begin(DEFAULTS);
  rig.output.openFile(DEFAULTS);
  rig.log.info("one");
  await rig.output.settled();
  assert.ok(rig.shown.join("").includes("\u001b["));
  assert.doesNotMatch(rig.file(), /\u001b/);
});

test("JSON lines go to both, by the settings or by the command line", async () => {
  for (const [isJson, json_format] of [
    [true, false],
    [false, true],
  ] as const) {
    await using rig = await open({ isJson });
    const settings = { ...DEFAULTS, json_format };
    rig.output.begin(settings);
    rig.output.openFile(settings);
    rig.log.info({ password: "hunter2", text: "a\u2028b" }, "one");
    await rig.output.settled();
    for (const line of [rig.file(), rig.shown.join("")]) {
      assert.match(line, /"text":"a\\u2028b"/);
      const { msg, password } = JSON.parse(line) as Record<string, unknown>;
      assert.deepEqual([msg, password], ["one", "[REDACTED]"]);
    }
  }
});

test("without a log file lines go to the stream alone, and switching it on and off holds at once", async () => {
  await using rig = await open();
  const off = { ...DEFAULTS, enabled: false };
  rig.output.begin(off);
  rig.output.openFile(off);
  rig.log.info("one");
  await rig.output.settled();
  assert.equal(existsSync(join(rig.dataDir, "logs")), false);
  assert.deepEqual([rig.output.status(), rig.output.rotate()], [undefined, undefined]);
  rig.output.configure(DEFAULTS);
  rig.log.info("two");
  await rig.output.settled();
  assert.match(rig.file(), /^\S+ INFO {2}two\n$/);
  rig.output.configure(off);
  rig.log.info("three");
  await rig.output.settled();
  assert.match(rig.file(), /^\S+ INFO {2}two\n$/);
  assert.equal(rig.shown.length, 3);
});

test("a log for standard error alone never makes a file, whatever the settings say", async () => {
  await using rig = await open({ hasFile: false });
  rig.output.begin(DEFAULTS);
  rig.output.openFile(DEFAULTS);
  rig.output.configure({ ...DEFAULTS, max_files: 1 });
  rig.log.info("one");
  await rig.output.settled();
  assert.deepEqual(readdirSync(rig.dataDir), []);
  assert.equal(rig.shown.length, 1);
});

test("retention and cap hold at once, with the file that is open", async () => {
  await using rig = await open();
  rig.output.begin(DEFAULTS);
  rig.output.openFile(DEFAULTS);
  for (let at = 0; at < 4; at += 1) {
    rig.log.info("x");
    await rig.output.rotate();
  }
  assert.equal((await rig.output.archives()).length, 4);
  rig.output.configure({ ...DEFAULTS, max_files: 2, max_file_size_mb: 1 });
  await rig.output.settled();
  assert.equal((await rig.output.archives()).length, 2);
  rig.log.info({ text: "x".repeat(700_000) }, "large");
  rig.log.info({ text: "x".repeat(700_000) }, "large");
  await rig.output.settled();
  assert.ok(rig.file().length < 1_048_576);
});

test("a file that cannot be written is complained about once, and the stream has everything", async () => {
  await using rig = await open({}, (dataDir) => {
    mkdirSync(join(dataDir, "logs"));
    symlinkSync("/dev/null", join(dataDir, "logs", "weir.log"));
  });
  rig.output.begin(DEFAULTS);
  rig.output.openFile(DEFAULTS);
  for (let at = 0; at < 10; at += 1) rig.log.info("one");
  await rig.output.settled();
  assert.equal(rig.complaints.length, 1);
  assert.match(rig.complaints[0] ?? "", /weir\.log cannot be written: it is a link\. The log goes on without it/);
  assert.equal(rig.shown.length, 10);
});

test("a start that fails early still says what it had to say", async () => {
  await using rig = await open();
  rig.log.warn("before the end");
  await rig.output.close();
  assert.match(rig.shown.join(""), /before the end/);
});
