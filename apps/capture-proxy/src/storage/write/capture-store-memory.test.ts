import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { openRig } from "../store-rig.ts";

test("the proxy thread's memory stays flat over 200,000 entries", { timeout: 120_000 }, async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxRequests: 10_000 });
  const { store } = rig;
  const body = Buffer.alloc(500, "x");
  const heldBytes = (): number => {
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  let afterWarmUp = 0;
  for (let added = 0; added < 200_000; added += 1) {
    rig.add({ responseBody: [body] });
    if (added % 500 === 0) await waitUntil(() => store.status().backlogEntries < 5000, { timeoutMs: 60_000 });
    if (added === 50_000) {
      await store.flush();
      afterWarmUp = heldBytes();
    }
  }
  await store.flush();
  assert.equal(store.status().entryCount, 10_000);
  assert.equal(store.status().entriesLost, 0);
  assert.equal(store.status().backlogBytes, 0);
  const grownMb = (heldBytes() - afterWarmUp) / 1e6;
  assert.ok(grownMb < 30, `grew by ${grownMb.toFixed(1)} MB`);
});
