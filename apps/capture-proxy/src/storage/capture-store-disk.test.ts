import assert from "node:assert/strict";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { runProcess, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { openRig } from "./store-rig.ts";

/** A small file system of its own; undefined (with a line that says so) where that is not allowed. */
async function smallDisk(context: TestContext, path: string): Promise<AsyncDisposable | undefined> {
  mkdirSync(path);
  const isRoot = process.platform === "linux" && process.getuid?.() === 0;
  const mounted = isRoot ? await runProcess("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", path]) : undefined;
  if (mounted?.code !== 0) {
    context.skip("needs the right to mount a tmpfs");
    return undefined;
  }
  return { [Symbol.asyncDispose]: async () => void (await runProcess("umount", ["-l", path])) };
}

test("on a full disk traffic goes on, the problem is told once, and storing goes on by itself when there is room", async (context) => {
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
  assert.match(store.status().problem ?? "", /^The disk is full: traffic goes on/u);
  const during = rig.add();
  assert.ok((await rig.rows({}, { limit: 1 })).total > 0, "what is stored can be read");
  await assert.rejects(store.updateSession(store.activeSessionId, { notes: "x".repeat(4_000_000) }), {
    name: "StoreTroubleError",
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

test("a large body that no longer fits is not stored, is counted, and its entry says so", async (context) => {
  await using directory = await temporaryDirectory();
  const path = directory.file("disk");
  await using disk = await smallDisk(context, path);
  if (disk === undefined) return;
  await using rig = await openRig(path);
  writeFileSync(`${path}/ballast`, Buffer.alloc(6_000_000));
  const piece = Buffer.alloc(500_000, 97);
  const { id } = rig.add({ responseBody: Array.from({ length: 10 }, () => piece) });
  await rig.store.flush();
  rmSync(`${path}/ballast`);
  await waitUntil(() => rig.store.status().ok, { timeoutMs: 10_000 });
  const response = (await rig.entry(id))?.response;
  assert.deepEqual(
    [response?.body_state, response?.body_size, response?.body_stored_size],
    ["not_stored", 5_000_000, 0],
  );
  assert.equal(rig.store.status().bodiesNotStored, 1);
});

test("a directory that cannot be written is refused with a sentence", async (context) => {
  if (process.getuid?.() === 0) {
    context.skip("the superuser may write everywhere");
    return;
  }
  await using directory = await temporaryDirectory();
  chmodSync(directory.path, 0o500);
  await assert.rejects(openRig(directory.path), /unable to open|readonly|EACCES/u);
  chmodSync(directory.path, 0o700);
});

test("a file system that becomes read-only is told, and storing goes on when it can be written again", async (context) => {
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
