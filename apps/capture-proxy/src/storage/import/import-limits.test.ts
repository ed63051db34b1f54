import assert from "node:assert/strict";
import { test } from "node:test";
import type { ImportResult } from "@headworks/capture-contract";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { NEVER, openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";

/** A HAR whose entries each have a body of this size. */
function har(entries: number, bodyBytes: number): Uint8Array {
  const text = "x".repeat(bodyBytes);
  const entry = {
    startedDateTime: "2026-01-02T03:04:05.678Z",
    request: { method: "GET", url: "https://example.com/a" },
    response: { status: 200, content: { text } },
  };
  return Buffer.from(JSON.stringify({ log: { entries: Array.from({ length: entries }, () => entry) } }));
}

async function importHar(rig: StoreRig, document: Uint8Array, switchSession = false): Promise<ImportResult> {
  const options = { sessionName: undefined, switchSession, signal: NEVER, onProgress: () => undefined };
  const source = async function* (): AsyncGenerator<Uint8Array> {
    yield document;
  };
  return await rig.store.importHar(source(), options);
}

const KIB = 1024;

async function fillLive(rig: StoreRig, entries: number, bodyBytes: number): Promise<void> {
  for (let count = 0; count < entries; count += 1) rig.add({ responseBody: ["y".repeat(bodyBytes)] });
  await rig.store.flush();
}

test("the result counts entries of other sessions that were removed for an import", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxTotalSizeMb: 1 });
  await fillLive(rig, 8, 100 * KIB);
  const result = await importHar(rig, har(5, 100 * KIB));
  assert.deepEqual([result.imported_count, result.dropped_count, result.displaced_count], [5, undefined, 3]);
  assert.deepEqual(result.errors, ["max_total_size_mb is 1: the 3 oldest entries of other sessions were removed"]);
  assert.equal((await rig.rows()).total, 5);
  assert.equal((await rig.rows({ session_id: result.session_id })).total, 5);
});

test("a document larger than the size limit is rejected, and no other entry is removed", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxTotalSizeMb: 1 });
  await fillLive(rig, 8, 100 * KIB);
  await assert.rejects(importHar(rig, har(11, 100 * KIB)), {
    name: "ImportRefusedError",
    message: /exceed max_total_size_mb \(1\)/,
  });
  assert.equal((await rig.store.listSessions()).length, 1);
  assert.equal((await rig.rows()).total, 8);
  // Removed entries do not count.
  await fillLive(rig, 2, 100 * KIB);
  assert.equal((await rig.rows()).total, 10);
});

test("entries beyond max_requests are counted when the session becomes active, and announced before", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxRequests: 10 });
  const first = await importHar(rig, har(12, 1));
  assert.deepEqual([first.imported_count, first.dropped_count, first.displaced_count], [12, undefined, undefined]);
  assert.deepEqual(first.errors, [
    "max_requests is 10: the oldest 2 of its 12 entries will be removed when this session becomes active",
  ]);
  const second = await importHar(rig, har(12, 1), true);
  assert.deepEqual([second.imported_count, second.dropped_count, second.displaced_count], [12, 2, undefined]);
  assert.deepEqual(second.errors, ["max_requests is 10: the oldest 2 of its 12 entries were removed"]);
  assert.deepEqual((await importHar(rig, har(10, 1), true)).errors, []);
  assert.equal(await rig.store.switchSession(first.session_id), 2);
  await waitUntil(() => rig.store.status().entryCount === 10);
  assert.equal(await rig.store.switchSession(second.session_id), 0);
});
