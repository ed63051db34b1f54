import assert from "node:assert/strict";
import { mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { runProcess, spawnProcess, temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { ChargerOrders } from "./quota-charger.ts";
import { compiledCharger } from "./quota-compiled.ts";
import { countLetters, readRecorded } from "./quota-recorded.ts";

const ROUNDS = 10;
const CHARGER = fileURLToPath(new URL("./quota-charger.ts", import.meta.url));
const DAY_S = Date.UTC(2026, 2, 1) / 1000;
/** Never used up: a round that only refuses proves nothing. */
const BUDGET = 1_000_000;

/** FS_IOC_SHUTDOWN with NOLOGFLUSH: nothing more of this file system reaches its disk, as if the power were gone. */
const CUT_BY: readonly (readonly [program: string, ...args: string[]])[] = [
  ["xfs_io", "-x", "-c", "shutdown"],
  ["perl", "-e", 'open(my $f, "<", $ARGV[0]) or die; my $how = pack("L", 2); ioctl($f, 0x8004587d, $how) or die $!'],
  ["python3", "-c", "import fcntl,os,sys; fcntl.ioctl(os.open(sys.argv[1], 0), 0x8004587d, b'\\2\\0\\0\\0')"],
];

/** Whether a program ran and was content. */
async function succeeds(command: string, ...args: string[]): Promise<boolean> {
  const exit = await runProcess(command, args).catch(() => undefined);
  return exit?.code === 0;
}

async function cutPower(mountPoint: string): Promise<boolean> {
  for (const [program, ...args] of CUT_BY) if (await succeeds(program, ...args, mountPoint)) return true;
  return false;
}

test(`quota rule 6: after a power cut (${ROUNDS} times) the file system holds every acknowledged charge, and at most those in flight besides`, async (context) => {
  if (process.platform !== "linux" || process.getuid?.() !== 0) {
    context.skip("needs Linux and the right to mount a file system");
    return;
  }
  await using directory = await temporaryDirectory();
  const image = directory.file("disk.img");
  const mountPoint = directory.file("disk");
  writeFileSync(image, "");
  truncateSync(image, 48 * 1024 * 1024);
  mkdirSync(mountPoint);
  const mount = async (): Promise<boolean> => await succeeds("mount", "-o", "loop", image, mountPoint);
  if (!(await succeeds("mkfs.ext4", "-q", "-F", image)) || !(await mount())) {
    context.skip("needs mkfs.ext4 and loop devices");
    return;
  }
  // An open handle of a process that is just ending keeps it busy for a moment.
  const unmount = async (): Promise<void> =>
    void (await waitUntil(async () => await succeeds("umount", mountPoint), { what: "unmounting" }));
  const tally = { acknowledged: 0, inFlight: 0 };
  try {
    if (!(await cutPower(mountPoint))) {
      context.skip("needs a file system that can be shut down, and xfs_io, perl or python3 to do it");
      return;
    }
    await unmount();
    assert.ok(await mount());
    const env = await compiledCharger(directory);
    let before = 0n;
    for (let round = 0; round < ROUNDS; round += 1) {
      const orders: ChargerOrders = {
        path: `${mountPoint}/state/state.db`,
        callers: 1 + Math.floor(Math.random() * 12),
        rounds: 1_000_000,
        dayS: DAY_S,
        monthS: DAY_S,
        daily: BUDGET,
        monthly: BUDGET,
      };
      await using charger = await spawnProcess(process.execPath, [CHARGER, JSON.stringify(orders)], {
        env,
      });
      const acknowledgements = 1 + Math.floor(Math.random() * 60);
      await charger.waitForOutput(new RegExp(`(?:[^a]*a){${acknowledgements}}|d`, "u"), 60_000);
      await delay(Math.random() * 5);
      // Ended before the cut, with all that is not synced still in memory: a sync that runs while a file system is shut
      // down may say that it worked, which after a real power cut nobody is left to hear.
      await charger.stop("SIGKILL");
      assert.ok(await cutPower(mountPoint));
      const seen = countLetters(charger.stdout());
      await unmount();
      assert.ok(await mount(), "the file system can be mounted again");
      const { dailySum, monthly } = readRecorded(orders.path);
      const where = `round ${round}: ${JSON.stringify({ ...seen, recorded: String(dailySum), before: String(before) })}`;
      assert.ok(dailySum - before >= seen.a, `what was acknowledged is recorded; ${where}`);
      assert.ok(dailySum - before <= seen.s, `at most what was in flight is recorded besides; ${where}`);
      assert.equal(monthly, dailySum, where);
      before = dailySum;
      tally.acknowledged += seen.a;
      tally.inFlight += seen.s - seen.a;
    }
    context.diagnostic(`${JSON.stringify(tally)}, recorded in the end: ${before}`);
    assert.ok(tally.acknowledged > 0);
  } finally {
    await succeeds("umount", "-l", mountPoint);
  }
});
