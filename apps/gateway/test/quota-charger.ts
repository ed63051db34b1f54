import { writeSync } from "node:fs";
import type { Logger } from "pino";
import { openStateStore } from "#storage/open-state-store.ts";
import type { BudgetCharge } from "#storage/state-store.ts";

/** What a charging process is told to do, as JSON in its first argument. */
export interface ChargerOrders {
  readonly path: string;
  readonly callers: number;
  /** Charges of each caller. */
  readonly rounds: number;
  readonly dayS: number;
  readonly monthS: number;
  readonly daily: number;
  readonly monthly: number;
}

/**
 * Charges one consumer through the real store and says on standard output what happens, one letter for each thing and
 * at once: `r` the store is open, `s` a charge begins, `a` it was acknowledged, `d` denied, `f` failed, `x` the store
 * could not be opened. Waits to be killed when it was denied; ends when all rounds are over.
 */
async function main(orders: ChargerOrders): Promise<void> {
  const say = (letter: string): void => {
    // A reader that does not keep up lets the socket run full: the letter waits, since it must be out before the next.
    for (;;) {
      try {
        writeSync(1, letter);
        return;
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
      }
    }
  };
  const ignore = (): void => undefined;
  const log = { error: ignore, warn: ignore, info: ignore } as unknown as Logger;
  const clock = { now: () => Date.now(), monotonic: () => performance.now() };
  const store = await openStateStore({ path: orders.path, log, clock }).catch((error: unknown) => {
    say("x");
    process.stderr.write(`${String(error)}\n`);
    return undefined;
  });
  if (store === undefined) return;
  await store.quotas.syncConsumers(["acme"]).catch(ignore);
  say("r");
  const budgets: readonly BudgetCharge[] = [
    { budget: "daily", windowStartS: orders.dayS, limit: BigInt(orders.daily) },
    { budget: "monthly", windowStartS: orders.monthS, limit: BigInt(orders.monthly) },
  ];
  const caller = async (): Promise<void> => {
    for (let round = 0; round < orders.rounds; round += 1) {
      say("s");
      const { outcome } = await store.quotas.charge("acme", budgets, true);
      say({ charged: "a", exhausted: "d", failed: "f", unsynced: "u" }[outcome]);
      if (outcome === "exhausted") return;
    }
  };
  await Promise.all(Array.from({ length: orders.callers }, caller));
  await store.close();
}

if (import.meta.main) await main(JSON.parse(process.argv[2] ?? "") as ChargerOrders);
