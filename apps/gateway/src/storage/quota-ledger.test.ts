import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { QuotaLedger } from "./quota-ledger.ts";
import type { BudgetCharge, ChargeResult } from "./state-store.ts";
import type { GroupMessage } from "./store-messages.ts";

const MOST = 2n ** 64n - 1n;
const daily = (limit: bigint, windowStartS = 0): BudgetCharge => ({ budget: "daily", windowStartS, limit });
const monthly = (limit: bigint, windowStartS = 0): BudgetCharge => ({ budget: "monthly", windowStartS, limit });

/** A disk that commits when it is told to, and a ledger on it. */
class Rig {
  readonly rows = new Map<string, bigint>();
  readonly ids = new Map<string, number>();
  readonly sent: GroupMessage[] = [];
  #flush: (() => void) | undefined;
  readonly ledger = new QuotaLedger({
    send: (group) => void this.sent.push(group),
    nowMs: () => 0,
    soon: (flush) => (this.#flush = flush),
  });

  /** Lets the ledger hand over its group, if it wants to. */
  turn(): void {
    const flush = this.#flush;
    this.#flush = undefined;
    flush?.();
  }

  /** The group that was handed over reaches the disk. */
  write(): void {
    const { writes, names } = this.sent[0] ?? {};
    for (let at = 0; writes !== undefined && at < writes.length; at += 3) {
      this.rows.set(`${writes[at]} ${writes[at + 1]}`, BigInt.asUintN(64, writes[at + 2] ?? 0n));
    }
    for (const name of names ?? []) if (!this.ids.has(name)) this.ids.set(name, this.ids.size + 1);
  }

  /** Ends the group that was handed over: it is written, or fails and is not. */
  commit(error?: string): void {
    if (error === undefined) this.write();
    const group = this.sent.shift();
    assert.ok(group, "there is a group");
    const { loads, names } = group;
    if (error !== undefined) return this.ledger.settled({ error, loaded: undefined, ids: undefined });
    const loaded = loads && new BigUint64Array(loads.length / 2);
    for (let at = 0; loads && loaded && at < loaded.length; at += 1) {
      loaded[at] = this.rows.get(`${loads[at * 2]} ${loads[at * 2 + 1]}`) ?? 0n;
    }
    this.ledger.settled({ error, loaded, ids: names?.map((name) => this.ids.get(name) ?? 0) });
  }

  /** Runs groups until nothing is left to do. */
  drain(): void {
    for (this.turn(); this.sent.length > 0; this.turn()) this.commit();
  }
}

async function synced(...names: string[]): Promise<Rig> {
  const rig = new Rig();
  const done = rig.ledger.sync(names);
  rig.drain();
  await done;
  return rig;
}

test("charges that come while a commit runs make one group, with one row for each counter", async () => {
  const rig = await synced("a", "b");
  const first = rig.ledger.charge("a", [daily(9n)], true);
  rig.drain();
  assert.equal((await first).outcome, "charged");
  const charges = Array.from({ length: 5 }, (_, index) =>
    Promise.resolve(rig.ledger.charge(index < 3 ? "a" : "b", [daily(9n), monthly(9n)], true)),
  );
  rig.turn();
  // The windows of the month, and of b, are read first.
  rig.commit();
  rig.turn();
  assert.equal(rig.sent[0]?.writes?.length, 4 * 3);
  rig.commit();
  assert.deepEqual(
    (await Promise.all(charges)).map((result) => result.outcome),
    Array.from({ length: 5 }, () => "charged"),
  );
  assert.deepEqual([...rig.rows.values()], [4n, 3n, 2n, 2n]);
});

test("nothing is refused because of units that never reach the disk: the next charge waits for what becomes of them", async () => {
  const rig = await synced("a");
  void rig.ledger.charge("a", [daily(1n, 5)], false);
  rig.drain();
  const last = rig.ledger.charge("a", [daily(2n, 5)], true);
  rig.turn();
  const next = rig.ledger.charge("a", [daily(2n, 5)], true);
  rig.commit("disk full");
  assert.equal((await last).outcome, "failed");
  assert.equal((await next).outcome, "failed");
  const again = rig.ledger.charge("a", [daily(2n, 5)], true);
  const tooMuch = rig.ledger.charge("a", [daily(2n, 5)], true);
  assert.ok(tooMuch instanceof Promise);
  rig.drain();
  assert.equal((await again).outcome, "charged");
  assert.deepEqual(await tooMuch, { outcome: "exhausted", budgets: ["daily"] });
  assert.deepEqual(rig.ledger.charge("a", [daily(2n, 5)], true), { outcome: "exhausted", budgets: ["daily"] });
  assert.equal(rig.sent.length, 0, "a refusal needs no commit");
});

test("a budget that is used up leaves the other one alone, and both are named when both are", async () => {
  const rig = await synced("a");
  const first = rig.ledger.charge("a", [daily(1n), monthly(2n)], true);
  rig.drain();
  await first;
  assert.deepEqual(rig.ledger.charge("a", [daily(1n), monthly(2n)], true), {
    outcome: "exhausted",
    budgets: ["daily"],
  });
  const other = rig.ledger.charge("a", [daily(1n, 86_400), monthly(2n)], true);
  rig.drain();
  assert.equal((await other).outcome, "charged");
  assert.deepEqual(rig.ledger.charge("a", [daily(1n, 86_400), monthly(2n)], true), {
    outcome: "exhausted",
    budgets: ["daily", "monthly"],
  });
  assert.deepEqual(
    [...rig.rows.values()].toSorted((a, b) => Number(a - b)),
    [1n, 1n, 2n],
  );
});

test("unsigned 64 bits: the last unit of 2^64 - 1 is given, the next is not, and a dry run stops counting there", async () => {
  const rig = await synced("a");
  rig.rows.set("2 0", MOST - 1n);
  const last = rig.ledger.charge("a", [daily(MOST)], true);
  rig.drain();
  assert.equal((await last).outcome, "charged");
  assert.equal(rig.rows.get("2 0"), MOST);
  assert.equal((await rig.ledger.charge("a", [daily(MOST)], true)).outcome, "exhausted");
  const dry = rig.ledger.charge("a", [daily(MOST)], false);
  rig.drain();
  assert.deepEqual(await dry, { outcome: "charged", over: ["daily"] });
  assert.equal(rig.rows.get("2 0"), MOST);
});

test("a consumer without a requested row is unsynced; one whose row cannot be created fails and is retried", async () => {
  const rig = await synced("a");
  assert.deepEqual(rig.ledger.charge("b", [daily(1n)], true), { outcome: "unsynced" });
  const sync = rig.ledger.sync(["b"]);
  const early = rig.ledger.charge("b", [daily(1n)], true);
  rig.turn();
  rig.commit("read-only");
  await assert.rejects(sync, /read-only/u);
  assert.equal((await early).outcome, "failed");
  rig.turn();
  assert.equal(rig.sent.length, 0, "a disk that refuses is not asked over and over");
  const later = rig.ledger.charge("b", [daily(1n)], true);
  rig.drain();
  assert.equal((await later).outcome, "charged");
  await rig.ledger.sync(["a", "b"]);
});

test("a blocked disk: waiting charges fail, new ones fail at once, and a late commit counts", async () => {
  const rig = await synced("a");
  const warm = rig.ledger.charge("a", [daily(9n)], true);
  rig.drain();
  await warm;
  const sent = rig.ledger.charge("a", [daily(3n)], true);
  rig.turn();
  const gathered = rig.ledger.charge("a", [daily(3n)], true);
  const deferred = rig.ledger.charge("a", [daily(3n)], true);
  rig.ledger.failCharges("stuck");
  for (const charge of [sent, gathered, deferred]) assert.equal((await charge).outcome, "failed");
  assert.deepEqual(rig.ledger.charge("a", [daily(3n)], true), { outcome: "failed", error: "stuck" });
  rig.commit();
  const next = rig.ledger.charge("a", [daily(3n)], true);
  rig.drain();
  assert.equal((await next).outcome, "charged");
  assert.deepEqual([...rig.rows.values()], [3n]);
  assert.equal((await rig.ledger.charge("a", [daily(3n)], true)).outcome, "exhausted");
});

test("when the thread is lost, counters are read again: what its last commit did is not known", async () => {
  const rig = await synced("a");
  const warm = rig.ledger.charge("a", [daily(2n)], true);
  rig.drain();
  await warm;
  const sent = rig.ledger.charge("a", [daily(2n)], true);
  rig.turn();
  rig.ledger.lost("gone");
  assert.equal((await sent).outcome, "failed");
  // It was written after all.
  rig.sent.length = 0;
  rig.rows.set("2 0", 2n);
  assert.equal((await rig.ledger.charge("a", [daily(2n)], true)).outcome, "failed");
  rig.ledger.resumed();
  const again = rig.ledger.charge("a", [daily(2n)], true);
  rig.drain();
  assert.equal((await again).outcome, "exhausted");
});

interface Step {
  readonly kind: "charge" | "turn" | "commit" | "fail" | "lose" | "lose-late";
  readonly consumer: number;
  readonly day: number;
  readonly limits: readonly [number, number];
  readonly enforce: boolean;
}

const stepOf: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(
    "charge",
    "charge",
    "charge",
    "charge",
    "turn",
    "commit",
    "commit",
    "fail",
    "lose-late",
    "lose",
  ),
  consumer: fc.nat(2),
  day: fc.nat(3),
  limits: fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 8 })),
  enforce: fc.boolean(),
});

/**
 * Whatever comes in whatever order, with a disk that fails and a thread that dies before or after its commit: what is on disk is never less than
 * what was acknowledged and never more than what was begun; both budgets or none; an enforced charge never takes a unit
 * beyond its limit; every charge has exactly one outcome.
 */
test("in any order of charges, commits and failures, the disk matches the results and no limit is exceeded", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(stepOf, { maxLength: 120, size: "max" }),
      fc.constantFrom(true, false, undefined),
      runModel,
    ),
    { numRuns: 300 },
  );
});

async function runModel(steps: readonly Step[], enforceAll: boolean | undefined): Promise<void> {
  const rig = await synced("c0", "c1", "c2");
  const begun = new Map<string, number>();
  const acknowledged = new Map<string, number>();
  const outcomes: Promise<ChargeResult>[] = [];
  const add = (map: Map<string, number>, key: string): void => void map.set(key, (map.get(key) ?? 0) + 1);
  for (const { kind, consumer, day, limits, enforce } of steps) {
    if (kind === "charge") {
      const isEnforced = enforceAll ?? enforce;
      // The limits of a generation hold for all, so that what is on disk can be held against them.
      const most = enforceAll === true ? ([3, 7] as const) : limits;
      const key = `${rig.ids.get(`c${consumer}`)}`;
      const result = Promise.resolve(
        rig.ledger.charge(`c${consumer}`, [daily(BigInt(most[0]), day), monthly(BigInt(most[1]))], isEnforced),
      );
      add(begun, `${key} ${day}`);
      outcomes.push(result);
      void result.then(({ outcome }) => outcome === "charged" && add(acknowledged, `${key} ${day}`));
    } else if (kind === "turn") rig.turn();
    else if (kind === "commit" || kind === "fail") {
      if (rig.sent.length > 0) rig.commit(kind === "fail" ? "problem" : undefined);
    } else {
      // The thread dies, before its commit or behind it.
      if (kind === "lose-late" && rig.sent.length > 0) rig.write();
      rig.sent.length = 0;
      rig.ledger.lost("lost");
      rig.ledger.resumed();
    }
    await Promise.resolve();
  }
  rig.drain();
  const results = await Promise.all(outcomes);
  await Promise.resolve();
  assert.ok(results.every(({ outcome }) => ["charged", "exhausted", "failed"].includes(outcome)));
  assert.ok(rig.ledger.isIdle);
  for (const id of rig.ids.values()) {
    let days = 0n;
    for (let day = 0; day <= 3; day += 1) {
      const used = rig.rows.get(`${id * 2} ${day}`) ?? 0n;
      days += used;
      assert.ok(used >= (acknowledged.get(`${id} ${day}`) ?? 0), "recorded at least what was acknowledged");
      assert.ok(used <= (begun.get(`${id} ${day}`) ?? 0), "and at most what was begun");
      if (enforceAll === true) assert.ok(used <= 3n);
    }
    const month = rig.rows.get(`${id * 2 + 1} 0`) ?? 0n;
    assert.equal(month, days, "both budgets or none");
    if (enforceAll === true) assert.ok(month <= 7n);
  }
}

test("a correction is on disk with the charges around it, within the counter's range, and gives or takes units", async () => {
  const rig = await synced("a");
  const window = daily(0n);
  const taken = rig.ledger.adjust("a", window, 2n);
  rig.drain();
  await taken;
  assert.deepEqual([...rig.rows.values()], [2n]);
  assert.deepEqual(rig.ledger.charge("a", [daily(2n)], true), { outcome: "exhausted", budgets: ["daily"] });
  const both = [
    rig.ledger.adjust("a", window, -1n),
    Promise.resolve(rig.ledger.charge("a", [daily(2n)], true)),
  ] as const;
  rig.turn();
  assert.equal(rig.sent[0]?.writes?.length, 3, "one row, once");
  rig.drain();
  assert.deepEqual(await Promise.all(both), [undefined, { outcome: "charged", over: [] }]);
  assert.deepEqual([...rig.rows.values()], [2n]);
  for (const [delta, used] of [
    [-9n, 0n],
    [MOST, MOST],
    [1n, MOST],
  ] as const) {
    const done = rig.ledger.adjust("a", window, delta);
    rig.drain();
    await done;
    assert.deepEqual([...rig.rows.values()], [used]);
  }
  assert.equal(rig.ledger.isIdle, true);
});

test("units that a correction gives back are free when it is on disk, and not if it never gets there", async () => {
  const rig = await synced("a");
  const full = rig.ledger.adjust("a", daily(0n), 3n);
  rig.drain();
  await full;
  const given = rig.ledger.adjust("a", daily(0n), -2n);
  rig.turn();
  assert.deepEqual(rig.ledger.charge("a", [daily(3n)], true), { outcome: "exhausted", budgets: ["daily"] });
  rig.commit("disk full");
  await assert.rejects(given, /disk full/);
  assert.deepEqual(rig.ledger.charge("a", [daily(3n)], true), { outcome: "exhausted", budgets: ["daily"] });
  await assert.rejects(async () => {
    const lost = rig.ledger.adjust("a", daily(0n), -2n);
    rig.ledger.lost("gone");
    await lost;
  }, /gone/);
});

test("whatever charges and corrections come and whatever fails, memory and disk agree in the end", async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("charge" as const), enforce: fc.boolean() }),
    fc.record({ kind: fc.constant("adjust" as const), delta: fc.bigInt({ min: -6n, max: 6n }) }),
    fc.constant({ kind: "turn" as const }),
    fc.constant({ kind: "commit" as const }),
    fc.constant({ kind: "fail" as const }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const rig = await synced("a");
      const outcomes: Promise<unknown>[] = [];
      for (const one of steps) {
        if (one.kind === "charge") outcomes.push(Promise.resolve(rig.ledger.charge("a", [daily(5n)], one.enforce)));
        else if (one.kind === "adjust") {
          outcomes.push(rig.ledger.adjust("a", daily(0n), one.delta).catch(() => undefined));
        } else if (one.kind === "turn") rig.turn();
        else if (rig.sent.length > 0) rig.commit(one.kind === "fail" ? "disk full" : undefined);
      }
      rig.drain();
      await Promise.all(outcomes);
      const [stored = 0n] = [...rig.rows.values()];
      assert.ok(stored >= 0n && stored <= MOST);
      const last = rig.ledger.adjust("a", daily(0n), 1n);
      rig.drain();
      await last;
      assert.equal([...rig.rows.values()][0], stored + 1n);
      assert.equal(rig.ledger.isIdle, true);
    }),
  );
});
