import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { runProcess } from "@headworks/testkit";
import type { TemporaryDirectory } from "@headworks/testkit";
import type { ChargerOrders } from "./quota-charger.ts";

const CHARGER = fileURLToPath(new URL("./quota-charger.ts", import.meta.url));

/**
 * Runs a charger to its end, and gives the environment in which the next ones need not compile anything: only a process
 * that ends by itself leaves behind what it compiled, one that is killed does not.
 */
export async function compiledCharger(directory: TemporaryDirectory): Promise<Readonly<Record<string, string>>> {
  const orders: ChargerOrders = {
    path: directory.file("compiling", "state.db"),
    callers: 1,
    rounds: 1,
    dayS: 0,
    monthS: 0,
    daily: 1,
    monthly: 1,
  };
  const env = { NODE_COMPILE_CACHE: directory.file("compiled") };
  const { stdout, stderr } = await runProcess(process.execPath, [CHARGER, JSON.stringify(orders)], { env });
  assert.deepEqual([stdout, stderr], ["rsa", ""]);
  return env;
}
