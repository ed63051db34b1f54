import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { spawnProcess, temporaryDirectory } from "@headworks/testkit";
import type { TemporaryDirectory } from "@headworks/testkit";
import type { ChargerOrders } from "./quota-charger.ts";
import { compiledCharger } from "./quota-compiled.ts";
import { countLetters, readRecorded } from "./quota-recorded.ts";

const ROUNDS = Number(process.env["SLUICE_CRASH_ROUNDS"] ?? 200);
const CHARGER = fileURLToPath(new URL("./quota-charger.ts", import.meta.url));
const DAY_S = 86_400;
const MONTH_S = Date.UTC(2026, 2, 1) / 1000;
/** Small, so that it is used up now and then. */
const BUDGET = 90;
/** After so many rounds a new day begins. */
const ROUNDS_PER_DAY = 4;
/** About twice as long as a charger takes until its store is open, beside another one. */
const EARLY_MS = 250;

interface Tally {
  acknowledged: number;
  started: number;
  denied: number;
  killedEarly: number;
}

/** Charges, kills, looks; many times on one file. */
async function crashes(
  directory: TemporaryDirectory,
  name: string,
  rounds: number,
  env: Readonly<Record<string, string>>,
): Promise<Tally> {
  const path = directory.file(name, "state.db");
  const tally: Tally = { acknowledged: 0, started: 0, denied: 0, killedEarly: 0 };
  let before = { daily: 0n, monthly: 0n };
  for (let round = 0; round < rounds; round += 1) {
    const day = Math.floor(round / ROUNDS_PER_DAY);
    const dayS = MONTH_S + day * DAY_S;
    if (round % ROUNDS_PER_DAY === 0) before = { ...before, daily: 0n };
    const orders: ChargerOrders = {
      path,
      callers: 1 + Math.floor(Math.random() * 16),
      rounds: 1_000_000,
      dayS,
      monthS: MONTH_S,
      daily: BUDGET,
      monthly: 1_000_000,
    };
    const output = await killedCharger(env, orders, round % 5 === 4);
    const seen = countLetters(output);
    const recorded = readRecorded(path);
    const used = recorded.daily.get(dayS) ?? 0n;
    const where = `round ${round} of ${name}: ${JSON.stringify({ ...seen, used: String(used), before: String(before.daily) })}`;
    assert.ok(used - before.daily >= seen.a, `what was acknowledged is recorded; ${where}`);
    assert.ok(used - before.daily <= seen.s, `nothing is recorded that did not begin; ${where}`);
    assert.ok(used <= BUDGET, `never beyond the budget; ${where}`);
    assert.equal(recorded.monthly, recorded.dailySum, `both budgets or none; ${where}`);
    assert.ok(seen.d === 0 || used === BigInt(BUDGET), `only a budget that is used up on disk refuses; ${where}`);
    assert.equal(seen.f + seen.u, 0, where);
    before = { daily: used, monthly: recorded.monthly };
    tally.acknowledged += seen.a;
    tally.started += seen.s;
    tally.denied += seen.d;
    if (!output.includes("r")) tally.killedEarly += 1;
  }
  return tally;
}

/** What a charger said until it was killed: at a random moment of its start, or of its work. */
async function killedCharger(
  env: Readonly<Record<string, string>>,
  orders: ChargerOrders,
  early: boolean,
): Promise<string> {
  await using charger = await spawnProcess(process.execPath, [CHARGER, JSON.stringify(orders)], { env });
  if (early) await delay(Math.random() * EARLY_MS);
  else {
    const acknowledgements = 1 + Math.floor(Math.random() * 60);
    const reached = new RegExp(`(?:[^a]*a){${acknowledgements}}|d`, "u");
    await charger.waitForOutput(reached, 60_000);
    await delay(Math.random() * 3);
  }
  const { stdout, stderr } = await charger.stop("SIGKILL");
  assert.equal(stderr, "");
  return stdout;
}

test(`quota rule 6: killed at any moment (${ROUNDS} rounds), the file is whole, holds every acknowledged charge and at most those in flight, and admits no more than the budget`, async (context) => {
  await using directory = await temporaryDirectory();
  const env = await compiledCharger(directory);
  const tallies = await Promise.all([
    crashes(directory, "one", Math.ceil(ROUNDS / 2), env),
    crashes(directory, "two", Math.floor(ROUNDS / 2), env),
  ]);
  const sum = (key: keyof Tally): number => tallies.reduce((total, tally) => total + tally[key], 0);
  context.diagnostic(
    `${sum("acknowledged")} acknowledged of ${sum("started")} begun, ${sum("denied")} denied, ${sum("killedEarly")} rounds killed before the store was open`,
  );
  assert.ok(sum("acknowledged") > ROUNDS, "the rounds charged something");
  assert.ok(sum("started") > sum("acknowledged"), "some were killed in flight");
});
