import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { archiveStamp } from "./archives.ts";
import { periodStart } from "./rotation-period.ts";

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
