import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterEach, test } from "node:test";
import { FakeClock, temporaryDirectory, type TemporaryDirectory } from "@headworks/testkit";
import { archiveStamp } from "./archives.ts";
import { LogFile, type LogFileOptions, periodStart } from "./log-file.ts";

const START = new Date(2026, 2, 1, 12, 30, 0).getTime();

const MINUTE = 60_000;

const HOUR = 60 * MINUTE;

interface Rig extends AsyncDisposable {
  readonly directory: TemporaryDirectory;
  readonly clock: FakeClock;
  readonly path: string;
  readonly file: LogFile;
  readonly said: string[];
  readonly text: (name?: string) => string;
  /** Sorted. */
  readonly others: () => string[];
}

const rigs: Rig[] = [];

afterEach(async () => {
  for (const rig of rigs.splice(0)) await rig[Symbol.asyncDispose]();
});

async function open(options: Partial<LogFileOptions> = {}, before?: (path: string) => void): Promise<Rig> {
  const directory = await temporaryDirectory();
  const path = options.path ?? join(directory.path, "logs", "weir.log");
  before?.(path);
  const clock = new FakeClock(START);
  const said: string[] = [];
  const file = new LogFile({
    path,
    rotation: { mode: "never" },
    maxFiles: 7,
    maxFileBytes: 100_000_000,
    isAsync: true,
    bufferLines: 10_000,
    overflow: "drop_newest",
    clock,
    onProblem: (sentence) => said.push(sentence),
    onRecovered: (dropped) => said.push(`recovered, ${dropped} lost`),
    ...options,
  });
  const rig: Rig = {
    directory,
    clock,
    path,
    file,
    said,
    text: (name = basename(path)) => readFileSync(join(dirname(path), name), "utf8"),
    others: () =>
      readdirSync(dirname(path))
        .filter((name) => name !== basename(path))
        .sort(),
    [Symbol.asyncDispose]: async () => {
      await file.close();
      await directory.remove();
    },
  };
  rigs.push(rig);
  return rig;
}

test("lines arrive in order in a file for its owner alone, and a file that is there goes on", async () => {
  const { file, path, text } = await open({}, (existing) => {
    mkdirSync(dirname(existing), { recursive: true });
    writeFileSync(existing, "before\n", { mode: 0o644 });
  });
  for (let at = 0; at < 1000; at += 1) file.write(`line ${at}\n`);
  await file.settled();
  assert.equal(text(), `before\n${Array.from({ length: 1000 }, (_, at) => `line ${at}\n`).join("")}`);
  assert.equal(lstatSync(path).mode & 0o777, 0o600);
  assert.deepEqual([file.status.writtenLines, file.status.waitingLines, file.status.droppedLines], [1000, 0, 0]);
});

test("without asynchronous writing a line is in the file when write returns", async () => {
  const { file, text } = await open({ isAsync: false });
  file.write("a\n");
  assert.equal(text(), "a\n");
  file.write("b\n");
  assert.equal(text(), "a\nb\n");
});

test("a process that ends at once has its last lines in the file", async () => {
  const { file, text } = await open();
  for (let at = 0; at < 5000; at += 1) file.write(`${at}\n`);
  file.flushSync();
  await file.settled();
  assert.equal(new Set(text().trimEnd().split("\n")).size, 5000);
  assert.equal(text().trimEnd().split("\n").length, 5000, "no line is written twice");
});

test("more lines than may wait are lost and counted: the newest, or the oldest when so chosen", async () => {
  for (const [overflow, last] of [
    ["drop_newest", "4"],
    ["drop_oldest", "99"],
  ] as const) {
    const { file, text } = await open({ bufferLines: 4, overflow });
    for (let at = 0; at < 100; at += 1) file.write(`${at}\n`);
    const { waitingLines, highWater } = file.status;
    assert.deepEqual([waitingLines, highWater], [5, 4], "one is being written, four wait");
    await file.settled();
    assert.deepEqual([file.status.writtenLines, file.status.droppedLines], [5, 95]);
    assert.equal(text().trimEnd().split("\n").at(-1), last);
    assert.equal(text().split("\n")[0], "0");
  }
});

test("the size cap holds in every mode at every write, and no line is torn or lost by it", async () => {
  for (const rotation of [
    { mode: "never" },
    { mode: "hourly" },
    { mode: "daily" },
    { mode: "size", sizeBytes: 5000 },
  ] as const) {
    const { file, path, others } = await open({ rotation, maxFileBytes: 1000, maxFiles: 1000 });
    const lines = Array.from({ length: 500 }, (_, at) => `${at} ${"x".repeat(at % 50)}\n`);
    for (const line of lines) file.write(line);
    await file.settled();
    const names = [...others().sort(byCopy), basename(path)];
    const texts = names.map((name) => readFileSync(join(dirname(path), name), "utf8"));
    for (const text of texts) assert.ok(text.length <= 1000 && text.endsWith("\n"), `${text.length}`);
    assert.equal(texts.join(""), lines.join(""));
    assert.ok(names.length > 10);
  }
});

/** `name`, `name.1`, `name.2`, … `name.10` */
function byCopy(left: string, right: string): number {
  const copy = (name: string): number => Number(/\d\d-\d\d-\d\d\.(\d+)$/.exec(name)?.[1] ?? 0);
  return copy(left) - copy(right);
}

test("the smaller of the rotation's size and the cap holds", async () => {
  const { file, others } = await open({ rotation: { mode: "size", sizeBytes: 100 } });
  for (let at = 0; at < 10; at += 1) file.write(`${"x".repeat(49)}\n`);
  await file.settled();
  assert.equal(others().length, 4);
});

test("a line longer than the cap has a file of its own", async () => {
  const { file, text, others } = await open({ maxFileBytes: 10 });
  file.write("short\n");
  file.write(`${"x".repeat(50)}\n`);
  file.write("after\n");
  await file.settled();
  assert.deepEqual([text(), others().length], ["after\n", 2]);
});

test("the file is put away under the local time, collisions of a second are counted, and the new file is empty", async () => {
  const { file, text, others, path } = await open();
  for (const word of ["a", "b", "c"]) {
    file.write(`${word}\n`);
    const archive = await file.rotate();
    assert.equal(text(), "");
    assert.equal(readFileSync(archive, "utf8"), `${word}\n`);
  }
  const name = `weir.log.${archiveStamp(START)}`;
  assert.deepEqual(others(), [name, `${name}.1`, `${name}.2`]);
  assert.equal(lstatSync(path).mode & 0o777, 0o600);
});

test("lines that were given before a rotation are in the archive, later ones are not", async () => {
  const { file, text } = await open();
  for (let at = 0; at < 2000; at += 1) file.write(`${"before".padEnd(200)}\n`);
  const rotated = file.rotate();
  const archive = await rotated;
  file.write("after\n");
  await file.settled();
  assert.equal(readFileSync(archive, "utf8").split("\n").length, 2001);
  assert.equal(text(), "after\n");
});

test("each rotation has an archive of its own, also those that are asked for while a write is under way", async () => {
  const { file, others } = await open();
  file.write("line\n");
  const archives = await Promise.all([file.rotate(), file.rotate(), file.rotate()]);
  assert.deepEqual(archives.map((path) => basename(path)).toSorted(), others());
  assert.deepEqual(
    archives.map((path) => readFileSync(path, "utf8")),
    ["line\n", "", ""],
  );
});

test("a name that is taken is left alone, whatever it is", async () => {
  const { file, path, directory } = await open();
  const taken = `${path}.${archiveStamp(START)}`;
  mkdirSync(taken);
  symlinkSync(directory.file("elsewhere"), `${taken}.1`);
  writeFileSync(`${taken}.2`, "foreign");
  file.write("a\n");
  assert.equal(await file.rotate(), `${taken}.3`);
  assert.equal(readFileSync(`${taken}.2`, "utf8"), "foreign");
  assert.equal(existsSync(directory.file("elsewhere")), false);
});

test("hours begin at the top of the hour and days at midnight, as seen by the check of each minute", async () => {
  for (const [mode, untilMs] of [
    ["hourly", 30 * MINUTE],
    ["daily", 11 * HOUR + 30 * MINUTE],
  ] as const) {
    const { file, clock, others, text } = await open({ rotation: { mode } });
    file.write("first\n");
    await file.settled();
    await clock.advance(untilMs - MINUTE);
    await file.settled();
    assert.deepEqual(others(), [], mode);
    await clock.advance(2 * MINUTE);
    await file.settled();
    const [archive = "", ...more] = others();
    assert.deepEqual(more, []);
    assert.match(archive, mode === "hourly" ? /2026-03-01_13-0[01]-00$/ : /2026-03-02_00-0[01]-00$/);
    assert.deepEqual([text(archive), text()], ["first\n", ""]);
    await clock.advance(2 * MINUTE);
    assert.equal(others().length, 1, "an empty file is not put away");
  }
});

test("a file that was left by an earlier day is put away at the start", async () => {
  const { others, text } = await open({ rotation: { mode: "daily" } }, (path) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "yesterday\n");
    utimesSync(path, (START - 24 * HOUR) / 1000, (START - 24 * HOUR) / 1000);
  });
  assert.equal(others().length, 1);
  assert.equal(text(), "");
});

test("a clock that jumps back by days makes one new file and not one at each check", async () => {
  const { file, clock, others } = await open({ rotation: { mode: "hourly" } });
  for (const jumpMs of [-50 * HOUR, 200 * HOUR]) {
    file.write("a\n");
    await file.settled();
    clock.jumpWallClock(jumpMs);
    for (let at = 0; at < 5; at += 1) {
      await clock.advance(MINUTE);
      file.write("b\n");
      await file.settled();
    }
  }
  assert.equal(others().length, 2);
});

test("the oldest archives go first, by the time of their last line, and only what is an archive goes", async () => {
  const { file, path, others, directory } = await open({ maxFiles: 100 }, (existing) => {
    mkdirSync(dirname(existing), { recursive: true });
    const make = (name: string, ageMs: number): void => {
      writeFileSync(join(dirname(existing), name), name);
      utimesSync(join(dirname(existing), name), (START - ageMs) / 1000, (START - ageMs) / 1000);
    };
    // The clock was set back, so the oldest file has the greatest name.
    make("weir.log.2026-02-03_00-00-00", 3000);
    make("weir.log.2026-02-02_00-00-00", 2000);
    make("weir.log.2026-02-02_00-00-00.9", 1000);
    make("weir.log.2026-02-02_00-00-00.10", 1000);
    for (const foreign of [
      "weir.log.old",
      "weir.log.2026-02-02",
      "weir.log.2026-02-02_00-00-00.gz",
      "other.log.2026-02-02_00-00-00",
      "weir.log.2026-02-02_00-00-00.01",
    ]) {
      make(foreign, 9000);
    }
    mkdirSync(join(dirname(existing), "weir.log.2026-02-01_00-00-00"));
    writeFileSync(join(dirname(existing), "..", "kept"), "kept");
    symlinkSync("../kept", join(dirname(existing), "weir.log.2026-01-01_00-00-00"));
  });
  const archives = (): string[] =>
    others().filter((name) => /_00-00-00(?:\.[1-9]\d*)?$/.test(name) && name.startsWith("weir"));
  const limits = { maxFileBytes: 1000, isAsync: true, bufferLines: 10, overflow: "drop_newest" } as const;
  file.setLimits({ ...limits, maxFiles: 2 });
  await file.settled();
  assert.deepEqual(archives(), [
    "weir.log.2026-01-01_00-00-00",
    "weir.log.2026-02-01_00-00-00",
    "weir.log.2026-02-02_00-00-00.10",
    "weir.log.2026-02-02_00-00-00.9",
  ]);
  file.setLimits({ ...limits, maxFiles: 0 });
  await file.settled();
  assert.equal(archives().length, 2, "the link and the directory stay");
  assert.equal(others().length, 7);
  assert.equal(readFileSync(directory.file("kept"), "utf8"), "kept");
  assert.ok(existsSync(path));
});

test("a file that is removed or renamed outside is begun anew within a moment, and its directory too", async () => {
  const { file, path, clock, text } = await open();
  const takeAway: readonly (() => void)[] = [
    () => unlinkSync(path),
    () => renameSync(path, `${path}.moved`),
    () => rmSync(dirname(path), { recursive: true }),
  ];
  for (const take of takeAway) {
    file.write("gone\n");
    await file.settled();
    take();
    // Continuous writes must not delay the check.
    for (let at = 0; at < 4; at += 1) {
      await clock.advance(100);
      file.write("gone\n");
      await file.settled();
    }
    file.write("here\n");
    await file.settled();
    assert.match(text(), /^(?:gone\n)*here\n$/);
  }
});

test("a file that another process empties goes on from its beginning", async () => {
  const { file, path, text } = await open();
  file.write("a\n");
  await file.settled();
  writeFileSync(path, "");
  file.write("b\n");
  await file.settled();
  assert.equal(text(), "b\n");
});

test("two that write one file lose nothing, and see each other's rotations and sizes", async () => {
  const one = await open({ maxFileBytes: 2000, maxFiles: 1000 });
  const two = await open({ path: one.path, maxFileBytes: 2000, maxFiles: 1000, clock: one.clock });
  const expected = new Set<string>();
  for (let at = 0; at < 200; at += 1) {
    for (const [name, { file }] of [["one", one] as const, ["two", two] as const]) {
      const line = `${name} ${at} ${"x".repeat(20)}`;
      expected.add(line);
      file.write(`${line}\n`);
    }
    if (at === 100) await one.file.rotate();
    if (at % 10 === 0) {
      await Promise.all([one.file.settled(), two.file.settled()]);
      await one.clock.advance(300);
    }
  }
  await Promise.all([one.file.settled(), two.file.settled()]);
  const found = ["weir.log", ...one.others()].flatMap((name) => one.text(name).split("\n").filter(Boolean));
  assert.deepEqual(new Set(found), expected);
  assert.equal(found.length, expected.size);
});

test("a link, a directory or a pipe in the place of the file is refused in a sentence, and the target is not touched", async () => {
  const cases: readonly (readonly [RegExp, (path: string) => void])[] = [
    [/: it is a link$/, (path) => symlinkSync(join(dirname(path), "target"), path)],
    [/: it is a directory$/, (path) => mkdirSync(path)],
    [/: it is not a regular file$/, (path) => assert.equal(spawnSync("mkfifo", [path]).status, 0)],
  ];
  for (const [sentence, make] of cases) {
    const { file, said, path, clock, text } = await open({}, (existing) => {
      mkdirSync(dirname(existing), { recursive: true });
      make(existing);
    });
    file.write("a\n");
    await file.settled();
    await clock.advance(5000);
    assert.equal(said.length, 1);
    assert.match(said[0] ?? "", sentence);
    assert.equal(existsSync(join(dirname(path), "target")), false);
    rmSync(path, { recursive: true });
    await clock.advance(1000);
    await file.settled();
    assert.equal(text(), "a\n", "it goes on when the way is free");
    assert.deepEqual(said.slice(1), ["recovered, 0 lost"]);
  }
});

test("a hard link to the file keeps what was written before a rotation, and gets nothing afterwards", async () => {
  const { file, path, directory } = await open();
  file.write("a\n");
  await file.settled();
  linkSync(path, directory.file("linked"));
  await file.rotate();
  file.write("b\n");
  await file.settled();
  assert.equal(readFileSync(directory.file("linked"), "utf8"), "a\n");
});

/** Drops root privileges temporarily, since root may write everywhere. */
async function asOrdinaryUser(paths: readonly string[], act: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return await act();
  for (const path of paths) chownSync(path, 65_534, 65_534);
  process.seteuid?.(65_534);
  try {
    await act();
  } finally {
    process.seteuid?.(0);
  }
}

test("a directory in which nothing can be renamed stops the file at its cap and loses visibly", async () => {
  const { file, path, said, clock, text, others, directory } = await open({ maxFileBytes: 100, bufferLines: 5 });
  file.write(`${"x".repeat(90)}\n`);
  await file.settled();
  await asOrdinaryUser([directory.path, dirname(path), path], async () => {
    chmodSync(dirname(path), 0o500);
    for (let at = 0; at < 20; at += 1) file.write(`${"y".repeat(90)}\n`);
    await file.settled();
    await assert.rejects(file.rotate(), /may not be written/);
    await clock.advance(5000);
    assert.equal(text().length, 91);
    assert.equal(said.length, 1);
    assert.equal(file.status.droppedLines, 15);
    chmodSync(dirname(path), 0o700);
    await clock.advance(1000);
    await file.settled();
  });
  assert.equal(others().length, 5);
  assert.equal(said.length, 2);
});

test("a full disk is said once, costs only what has no room, and the rest comes when there is room", async (t) => {
  const directory = await temporaryDirectory();
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", directory.path]);
  if (mounted.status !== 0) {
    t.skip(`no small file system can be mounted here: ${String(mounted.stderr).trim()}`);
    await directory.remove();
    return;
  }
  let file: LogFile | undefined;
  try {
    const ballast = directory.file("ballast");
    writeFileSync(ballast, Buffer.alloc(49_152));
    const rig = await open({ path: directory.file("weir.log"), bufferLines: 20 });
    const { said, clock } = rig;
    file = rig.file;
    const line = (at: number): string => `${String(at).padStart(4, "0")} ${"x".repeat(2000)}\n`;
    for (let at = 0; at < 60; at += 1) {
      file.write(line(at));
      await file.settled();
    }
    assert.match(said.join(), /^The log file .* cannot be written: the disk is full$/);
    for (let at = 0; at < 10; at += 1) await clock.advance(1000);
    await file.settled();
    assert.equal(said.length, 1);
    const { droppedLines, writtenLines, waitingLines, problem } = file.status;
    assert.ok(droppedLines > 0 && writtenLines > 0 && waitingLines > 0 && problem !== undefined);
    assert.equal(droppedLines + writtenLines + waitingLines, 60);
    unlinkSync(ballast);
    await clock.advance(1000);
    await file.settled();
    assert.deepEqual([said.length, file.status.problem], [2, undefined]);
    assert.equal(said[1], `recovered, ${droppedLines} lost`);
    const numbers = rig.text().trimEnd().split("\n");
    assert.equal(numbers.length, 60 - droppedLines);
    for (const [at, text] of numbers.entries()) assert.equal(`${text}\n`, line(at), "no line is torn");
  } finally {
    await file?.close();
    spawnSync("umount", [directory.path]);
    await directory.remove();
  }
});

test("closing writes queued lines, and later ones are discarded", async () => {
  const { file, text } = await open();
  for (let at = 0; at < 3000; at += 1) file.write(`${at}\n`);
  await file.close();
  file.write("late\n");
  assert.equal(text().split("\n").length, 3001);
  await assert.rejects(file.rotate(), /closed/);
});

const HOURLY = { mode: "hourly" } as const;

const DAILY = { mode: "daily" } as const;

test("no time passes for files that are put away by size alone or not at all", () => {
  assert.equal(periodStart({ mode: "never" }, Date.now()), undefined);
  assert.equal(periodStart({ mode: "size", sizeBytes: 1 }, Date.now()), undefined);
});

// The time zone of a process is fixed at its start.
if (process.argv[2] === "in-zone") {
  const [, , , first = "", steps = "0", stepMinutes = "30"] = process.argv;
  const hours = new Set<number>();
  const days = new Set<number>();
  const startsOfHours: string[] = [];
  for (let at = 0; at < Number(steps); at += 1) {
    const moment = Date.parse(first) + at * Number(stepMinutes) * 60_000;
    const hour = periodStart(HOURLY, moment) ?? 0;
    if (!hours.has(hour)) startsOfHours.push(archiveStamp(hour).slice(11, 16));
    hours.add(hour);
    days.add(periodStart(DAILY, moment) ?? 0);
  }
  process.stdout.write(JSON.stringify({ hours: hours.size, days: days.size, startsOfHours }));
} else {
  const cases: readonly {
    readonly zone: string;
    readonly why: string;
    readonly first: string;
    readonly hours: number;
    readonly days: number;
    readonly starts: readonly string[];
  }[] = [
    {
      zone: "UTC",
      why: "plain",
      first: "2026-03-01T22:00:00Z",
      hours: 4,
      days: 2,
      starts: ["22-00", "23-00", "00-00", "01-00"],
    },
    {
      zone: "Asia/Kolkata",
      why: "half an hour off",
      first: "2026-03-01T17:30:00Z",
      hours: 4,
      days: 2,
      starts: ["23-00", "00-00", "01-00", "02-00"],
    },
    {
      zone: "Asia/Kathmandu",
      why: "a quarter off",
      first: "2026-03-01T17:15:00Z",
      hours: 4,
      days: 2,
      starts: ["23-00", "00-00", "01-00", "02-00"],
    },
    {
      zone: "Europe/Berlin",
      why: "an hour that is there twice",
      first: "2026-10-25T00:00:00Z",
      hours: 4,
      days: 1,
      starts: ["02-00", "02-00", "03-00", "04-00"],
    },
    {
      zone: "Europe/Berlin",
      why: "an hour that is not there",
      first: "2026-03-29T00:00:00Z",
      hours: 4,
      days: 1,
      starts: ["01-00", "03-00", "04-00", "05-00"],
    },
    {
      zone: "America/Santiago",
      why: "a midnight that is not there",
      first: "2026-09-06T03:00:00Z",
      hours: 4,
      days: 2,
      starts: ["23-00", "01-00", "02-00", "03-00"],
    },
    {
      zone: "Australia/Lord_Howe",
      why: "a clock that moves by half an hour",
      first: "2026-10-03T14:30:00Z",
      hours: 5,
      days: 1,
      // The hour starting at half past two has no full hour; its start is found by subtracting the displayed minutes.
      starts: ["01-00", "01-30", "03-00", "04-00", "05-00"],
    },
  ];
  for (const { zone, why, first, hours, days, starts } of cases) {
    test(`hours and days follow the local clock: ${zone}, ${why}`, () => {
      const output = execFileSync(
        process.execPath,
        [...process.execArgv.filter((flag) => !flag.startsWith("--test")), import.meta.filename, "in-zone", first, "8"],
        { env: { ...process.env, TZ: zone, NODE_TEST_CONTEXT: undefined }, encoding: "utf8" },
      );
      const found = JSON.parse(output.slice(output.indexOf("{"), output.indexOf("}") + 1)) as object;
      assert.deepEqual(found, { hours, days, startsOfHours: starts });
    });
  }
}
