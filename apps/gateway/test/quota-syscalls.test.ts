import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { TestContext } from "node:test";
import { runProcess, temporaryDirectory } from "@headworks/testkit";
import type { Exit, TemporaryDirectory } from "@headworks/testkit";
import type { ChargerOrders } from "./quota-charger.ts";
import { compiledCharger } from "./quota-compiled.ts";
import { countLetters, readRecorded } from "./quota-recorded.ts";

const CHARGER = fileURLToPath(new URL("./quota-charger.ts", import.meta.url));
const DAY_S = Date.UTC(2026, 2, 1) / 1000;

async function hasStrace(context: TestContext): Promise<boolean> {
  const probe = await runProcess("strace", ["-f", "-e", "trace=none", "true"]).catch(() => undefined);
  if (probe?.code === 0) return true;
  context.skip("needs strace and the right to trace");
  return false;
}

/** Runs a charger below strace. */
async function traced(
  directory: TemporaryDirectory,
  options: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Exit> {
  const orders: ChargerOrders = {
    path: directory.file("state", "state.db"),
    callers: 1,
    rounds: 10,
    dayS: DAY_S,
    monthS: DAY_S,
    daily: 1000,
    monthly: 1000,
  };
  return await runProcess(
    "strace",
    ["-f", "-yy", "-o", directory.file("trace"), ...options, process.execPath, CHARGER, JSON.stringify(orders)],
    { timeoutMs: 60_000, env },
  );
}

test("quota rule 6: the write-ahead log is synced between the start of a charge and its acknowledgement, every time", async (context) => {
  if (!(await hasStrace(context))) return;
  await using directory = await temporaryDirectory();
  const { stdout, stderr } = await traced(
    directory,
    ["-e", "trace=fsync,fdatasync,write"],
    await compiledCharger(directory),
  );
  assert.equal(stderr, "");
  assert.equal(stdout, `r${"sa".repeat(10)}`);
  const steps = readFileSync(directory.file("trace"), "utf8")
    .split("\n")
    .flatMap((line) => stepOf(line));
  const acknowledged = steps.join(" ").split("ack");
  assert.equal(acknowledged.length, 11);
  for (const before of acknowledged.slice(0, 10)) assert.match(before, /start(?: \S+)* synced(?: |$)/u);
});

/** A sync of the log that ended well, or a letter of the charger. Letters of the sync's first half do not count. */
function stepOf(line: string): string[] {
  if (/\b(?:fsync|fdatasync)\(\d+<[^>]*state\.db-wal>\)\s*= 0$/u.test(line)) return ["synced"];
  if (/<\.\.\. (?:fsync|fdatasync) resumed>\)\s*= 0$/u.test(line)) return ["synced"];
  const letter = /\bwrite\(1<.*>, "([sa])"/u.exec(line)?.[1];
  return letter === undefined ? [] : [letter === "s" ? "start" : "ack"];
}

/** Every kind of failure at every place that a short life of the store has. */
const FAILURES: readonly (readonly [call: string, error: string, places: readonly string[]])[] = [
  // Opening a new file takes about 10 syncs and 46 writes, a charge one and two.
  ["fsync,fdatasync", "EIO", ["1", "4", "8", "11", "12..14", "13+"]],
  ["pwrite64", "ENOSPC", ["1", "20", "48", "49..54", "51+"]],
  ["pwrite64", "EIO", ["5", "49", "50..55", "52+"]],
  ["ftruncate,unlink", "EIO", ["1", "2+"]],
  ["fcntl", "EIO", ["2", "5+"]],
];

test("the n-th system call that fails never makes a false acknowledgement, and the store works again without a restart", async (context) => {
  if (!(await hasStrace(context))) return;
  await using compiled = await temporaryDirectory();
  const env = await compiledCharger(compiled);
  const outcomes: string[] = [];
  for (const [call, error, places] of FAILURES) {
    for (const place of places) {
      await using directory = await temporaryDirectory();
      const inject = ["-e", `trace=${call}`, "-e", `inject=${call}:error=${error}:when=${place}`];
      const file = directory.file("state", "state.db");
      const paths = ["-P", file, "-P", `${file}-wal`, "-P", directory.file("state")];
      const { code, stdout } = await traced(directory, [...paths, ...inject], env);
      const seen = countLetters(stdout);
      const where = `${call} ${error} at ${place}: ${stdout}`;
      assert.equal(code, 0, `it neither crashes nor hangs; ${where}`);
      assert.equal(seen.a + seen.f, seen.s, `every charge has its outcome; ${where}`);
      const { dailySum, monthly } = readRecorded(file);
      assert.ok(dailySum >= seen.a, `what was acknowledged is recorded (${dailySum}); ${where}`);
      assert.ok(dailySum <= seen.s, `nothing else is (${dailySum}); ${where}`);
      assert.equal(monthly, dailySum, where);
      if (!place.endsWith("+") && seen.f > 0) assert.match(stdout, /a$/u, `it works again; ${where}`);
      outcomes.push(stdout.includes("x") ? "refused" : seen.f > 0 ? "failed" : "unharmed");
    }
  }
  const count = (outcome: string): number => outcomes.filter((each) => each === outcome).length;
  context.diagnostic(
    `${outcomes.length} places: ${count("refused")} refused to open, ${count("failed")} failed charges, ${count("unharmed")} unharmed`,
  );
  assert.ok(count("refused") > 0, "the failures reached the opening");
  assert.ok(
    count("failed") >= 6,
    "most places behind the opening are in charges; else its calls are to be counted anew",
  );
});
