import assert from "node:assert/strict";
import { test } from "node:test";
import { waitUntil } from "@headworks/testkit";
import { ReaderPool } from "./reader-client.ts";

test("what both threads break over is said once, and again a second later", async () => {
  const said: { reason: string; atMs: number }[] = [];
  // An unclonable value makes every start fail.
  const unclonable = (() => "traffic.db") as unknown as string;
  const pool = new ReaderPool(
    { path: unclonable, bodiesFolder: "", decodedFolder: "", index: undefined },
    { caughtUp: () => undefined, onBroken: (reason) => void said.push({ reason, atMs: performance.now() }) },
  );
  pool.start();
  assert.equal(said.length, 1);
  assert.match(said[0]?.reason ?? "", /^A reader thread could not start: /);
  await waitUntil(() => {
    pool.start();
    return said.length >= 2;
  });
  assert.ok((said[1]?.atMs ?? 0) - (said[0]?.atMs ?? 0) >= 1000);
  assert.equal(said[1]?.reason, said[0]?.reason);
  await pool.close();
  assert.equal(said.length, 2);
});
