import assert from "node:assert/strict";
import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { describe, test } from "node:test";
import type { TestContext } from "node:test";
import { runProcess, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { sampleExchange } from "../read/sample-exchange.ts";
import { openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";

/** A small file system; undefined where mounting is not permitted, which is reported. */
async function smallDisk(context: TestContext, path: string, mib = 8): Promise<AsyncDisposable | undefined> {
  mkdirSync(path);
  const isRoot = process.platform === "linux" && process.getuid?.() === 0;
  const mounted = isRoot ? await runProcess("mount", ["-t", "tmpfs", "-o", `size=${mib}m`, "tmpfs", path]) : undefined;
  if (mounted?.code !== 0) {
    context.skip("needs the right to mount a tmpfs");
    return undefined;
  }
  return { [Symbol.asyncDispose]: async () => void (await runProcess("umount", ["-l", path])) };
}

const LARGE = { responseBody: ["x".repeat(100_000)] };

/** Adds entries until the disk is full, then fills the rest with other data. */
async function fill(rig: StoreRig, path: string): Promise<void> {
  const isFull = (): boolean => {
    rig.add(LARGE);
    return !rig.store.status().ok;
  };
  await waitUntil(isFull, { timeoutMs: 20_000 });
  fillRest(path);
}

function fillRest(path: string): void {
  const ballast = openSync(`${path}/ballast`, "a");
  try {
    for (;;) writeSync(ballast, Buffer.alloc(4096));
  } catch {
    closeSync(ballast);
  }
}

// Run concurrently: the tests mostly wait for the retry after a second.
describe("a full disk", { concurrency: 4 }, () => {
  test("on a full disk traffic continues, the problem is reported once, and storing resumes when there is space", async (context) => {
    await using directory = await temporaryDirectory();
    const path = directory.file("disk");
    await using disk = await smallDisk(context, path);
    if (disk === undefined) return;
    await using rig = await openRig(path);
    const { store } = rig;
    writeFileSync(`${path}/ballast`, Buffer.alloc(5_000_000));
    const body = "x".repeat(100_000);
    let added = 0;
    await waitUntil(
      () => {
        rig.add({ responseBody: [body] });
        added += 1;
        return !store.status().ok;
      },
      { timeoutMs: 20_000 },
    );
    assert.match(store.status().problem ?? "", /^The disk is full: requests are still proxied/u);
    const during = rig.add();
    assert.ok((await rig.rows({}, { limit: 1 })).total > 0, "what is stored can be read");
    await assert.rejects(store.updateSession(store.activeSessionId, { notes: "x".repeat(4_000_000) }), {
      name: "StorageError",
      message: /^The disk is full/u,
    });
    rmSync(`${path}/ballast`);
    await waitUntil(() => store.status().ok, { timeoutMs: 10_000 });
    await store.flush();
    assert.ok(await rig.entry(during.id), "what was recorded meanwhile is stored");
    assert.equal(store.status().entryCount + store.status().entriesLost, added + 1);
    assert.equal(store.status().entriesLost, 0);
    assert.equal(rig.alarms.length, 1);
  });

  test("entries that a full disk rejected are counted and reported at the end", async (context) => {
    await using directory = await temporaryDirectory();
    const path = directory.file("disk");
    await using disk = await smallDisk(context, path);
    if (disk === undefined) return;
    const rig = await openRig(path);
    const { store } = rig;
    await fill(rig, path);
    const stored = store.status().entryCount;
    for (let added = 0; added < 40; added += 1) rig.add();
    const { backlogEntries } = store.status();
    await store.close();
    assert.equal(store.status().entriesLost, backlogEntries);
    const sentence = `${backlogEntries} entries could not be stored and are lost: the disk is full (database or disk is full)`;
    assert.deepEqual([rig.alarms.length, rig.alarms[1], store.status().problem], [2, sentence, sentence]);
    rmSync(`${path}/ballast`);
    await using again = await openRig(path);
    assert.equal(again.store.status().entryCount, stored);
  });

  test("entries queued for a full disk are cleared with the others and do not reappear", async (context) => {
    await using directory = await temporaryDirectory();
    const path = directory.file("disk");
    await using disk = await smallDisk(context, path);
    if (disk === undefined) return;
    await using rig = await openRig(path);
    const { store } = rig;
    await fill(rig, path);
    const during = sampleExchange({ state: { step: "responding" } });
    store.record(store.nextSeq(), during);
    store.streams.open(during, "websocket").end();
    await store.clearSession(store.activeSessionId);
    rmSync(`${path}/ballast`);
    const { id } = rig.add();
    await store.flush();
    assert.deepEqual(
      (await rig.rows()).rows.map((row) => row.id),
      [id],
    );
    assert.equal(await store.streams.getStream(during.id), undefined);
  });

  test("on a full disk clearing a session makes space to resume storing", async (context) => {
    await using directory = await temporaryDirectory();
    const path = directory.file("disk");
    await using disk = await smallDisk(context, path, 48);
    if (disk === undefined) return;
    await using rig = await openRig(path);
    const { store } = rig;
    await fill(rig, path);
    await store.clearSession(store.activeSessionId);
    await waitUntil(() => store.status().ok, { timeoutMs: 10_000 });
    const after = Array.from({ length: 100 }, () => rig.add(LARGE).id);
    await store.flush();
    assert.deepEqual([store.status().ok, store.status().entriesLost], [true, 0]);
    assert.ok(await rig.entry(after.at(-1) ?? ""));
  });

  test("on a full disk deleting another session makes space to resume storing", async (context) => {
    await using directory = await temporaryDirectory();
    const path = directory.file("disk");
    await using disk = await smallDisk(context, path, 48);
    if (disk === undefined) return;
    await using rig = await openRig(path);
    const { store } = rig;
    const first = store.activeSessionId;
    for (let added = 0; added < 150; added += 1) rig.add(LARGE);
    assert.equal(await store.switchSession((await store.createSession("next", null)).id), 0);
    const before = rig.add();
    await fill(rig, path);
    assert.equal(await store.deleteSession(first), "deleted");
    await waitUntil(() => store.status().ok, { timeoutMs: 10_000 });
    const after = Array.from({ length: 50 }, () => rig.add(LARGE).id);
    await store.flush();
    assert.deepEqual([store.status().ok, store.status().entriesLost], [true, 0]);
    for (const id of [before.id, after.at(-1) ?? ""]) assert.ok(await rig.entry(id));
  });

  test("a store opened on a full disk can be cleared", async (context) => {
    await using directory = await temporaryDirectory();
    const path = directory.file("disk");
    await using disk = await smallDisk(context, path, 48);
    if (disk === undefined) return;
    {
      await using rig = await openRig(path);
      await fill(rig, path);
    }
    await using rig = await openRig(path);
    await rig.store.clearSession(rig.store.activeSessionId);
    const { id } = rig.add(LARGE);
    await rig.store.flush();
    assert.deepEqual([rig.store.status().ok, rig.store.status().entriesLost], [true, 0]);
    assert.ok(await rig.entry(id));
  });

  test("a store opened on a nearly full disk can be cleared during traffic", async (context) => {
    await using directory = await temporaryDirectory();
    const path = directory.file("disk");
    await using disk = await smallDisk(context, path, 48);
    if (disk === undefined) return;
    writeFileSync(`${path}/ballast`, Buffer.alloc(1_000_000));
    {
      await using rig = await openRig(path);
      await fill(rig, path);
    }
    await using rig = await openRig(path);
    fillRest(path);
    // Room for clearing, but not for the queued entries.
    truncateSync(`${path}/ballast`, statSync(`${path}/ballast`).size - 98_304);
    const cleared = rig.store.clearSession(rig.store.activeSessionId);
    const added = Array.from({ length: 10 }, () => rig.add(LARGE).id);
    await Promise.all([cleared, rig.store.flush()]);
    assert.deepEqual([rig.store.status().ok, rig.store.status().entriesLost, rig.alarms], [true, 0, []]);
    for (const id of added) assert.ok(await rig.entry(id));
  });

  test("cleared space is returned to the disk once it is nearly all of the database", async () => {
    await using directory = await temporaryDirectory();
    await using rig = await openRig(directory.path);
    for (let added = 0; added < 800; added += 1) rig.add(LARGE);
    await rig.store.flush();
    await waitUntil(() => rig.store.status().storeSizeBytes > 80_000_000);
    const { id } = await rig.store.createSession("next", null);
    await rig.store.switchSession(id);
    const kept = rig.add();
    await rig.store.clearSession((await rig.store.listSessions()).find((session) => session.id !== id)?.id ?? "");
    await waitUntil(() => rig.store.status().storeSizeBytes < 4_000_000, { timeoutMs: 10_000 });
    assert.ok(await rig.entry(kept.id));
  });

  test("a large body that no longer fits is not stored, counted, marked in its entry and reported once", async (context) => {
    await using directory = await temporaryDirectory();
    const path = directory.file("disk");
    await using disk = await smallDisk(context, path);
    if (disk === undefined) return;
    await using rig = await openRig(path);
    writeFileSync(`${path}/ballast`, Buffer.alloc(6_000_000));
    const piece = Buffer.alloc(500_000, 97);
    const large = { responseBody: Array.from({ length: 10 }, () => piece) };
    const { id } = rig.add(large);
    rig.add(large);
    await rig.store.flush();
    rmSync(`${path}/ballast`);
    await waitUntil(() => rig.store.status().ok, { timeoutMs: 10_000 });
    const response = (await rig.entry(id))?.response;
    assert.deepEqual(
      [response?.body_state, response?.body_size, response?.body_stored_size],
      ["not_stored", 5_000_000, 0],
    );
    assert.equal(rig.store.status().bodiesNotStored, 2);
    const said = rig.alarms.filter((sentence) => sentence.includes("body"));
    assert.equal(said.length, 1);
    assert.match(said[0] ?? "", /^A large body was not stored \(reported once\): the disk is full \(ENOSPC/);
  });

  test("a directory that is not writable is rejected with a message", async (context) => {
    if (process.getuid?.() === 0) {
      context.skip("the superuser may write everywhere");
      return;
    }
    await using directory = await temporaryDirectory();
    chmodSync(directory.path, 0o500);
    await assert.rejects(openRig(directory.path), /unable to open|readonly|EACCES/u);
    chmodSync(directory.path, 0o700);
  });

  test("a file system that becomes read-only is reported, and storing resumes when it is writable", async (context) => {
    await using directory = await temporaryDirectory();
    const path = directory.file("disk");
    await using disk = await smallDisk(context, path);
    if (disk === undefined) return;
    await using rig = await openRig(path);
    const before = rig.add();
    await rig.store.flush();
    const locked = await runProcess("mount", ["-o", "remount,ro", path]);
    if (locked.code !== 0) {
      context.skip("a file system in use cannot be made read-only here");
      return;
    }
    const during = rig.add();
    await waitUntil(() => !rig.store.status().ok, { timeoutMs: 10_000 });
    assert.ok(await rig.entry(before.id));
    await runProcess("mount", ["-o", "remount,rw", path]);
    await waitUntil(() => rig.store.status().ok, { timeoutMs: 10_000 });
    await rig.store.flush();
    assert.ok(await rig.entry(during.id));
  });
});
