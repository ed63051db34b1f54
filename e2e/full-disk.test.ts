import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { proxyClient, startOrigin, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { startWeir } from "./rig.ts";

/** Mounting a small file system needs permissions that some users and sandboxes lack. */
async function smallDisk(): Promise<{ path: string; remove(): Promise<void> } | undefined> {
  const directory = await temporaryDirectory();
  const isMounted =
    process.getuid?.() === 0 &&
    spawnSync("mount", ["-t", "tmpfs", "-o", "size=24m", "tmpfs", directory.path]).status === 0;
  if (!isMounted) {
    await directory.remove();
    return undefined;
  }
  return {
    path: directory.path,
    async remove() {
      spawnSync("umount", ["-l", directory.path]);
      await directory.remove();
    },
  };
}

test("a full disk stops recording, not proxying, is reported, and recording resumes without a restart", async (context) => {
  const disk = await smallDisk();
  if (disk === undefined) {
    process.stdout.write("# skipping: no small file system can be mounted here\n");
    context.skip("needs the right to mount a file system");
    return;
  }
  try {
    const body = Buffer.alloc(150_000, "disk");
    await using origin = await startOrigin({ handler: (_request, response) => response.end(body) });
    await using weir = await startWeir({ dataDir: `${disk.path}/data`, args: ["--log-json"] });
    const client = proxyClient(weir.proxyPort);
    const get = async (path: string): Promise<void> => {
      const response = await client.fetch(`${origin.url}${path}`);
      assert.equal(response.status, 200);
      assert.deepEqual(response.body, body);
    };
    await get("/before");
    await weir.waitForEntries(1, "/before");
    const filler = `${disk.path}/filler`;
    await writeFile(filler, Buffer.alloc(64e6)).catch((error: NodeJS.ErrnoException) =>
      assert.equal(error.code, "ENOSPC"),
    );
    const logged = weir.process.stderr().length;
    await waitUntil(
      async () => {
        await get("/full");
        return !(await weir.stats()).storage_ok;
      },
      { timeoutMs: 20_000, what: "the report of a full disk" },
    );
    for (let index = 0; index < 30; index += 1) await get(`/still/${index}`);
    const stats = await weir.stats();
    assert.match(stats.storage_problem ?? "", /full|space|disk/i);
    const lines = weir.process
      .stderr()
      .slice(logged)
      .split("\n")
      .filter((line) => line !== "");
    assert.ok(lines.length >= 1 && lines.length < 10, `${lines.length} log lines:\n${lines.slice(0, 12).join("\n")}`);
    await rm(filler);
    await waitUntil(async () => (await weir.stats()).storage_ok, { timeoutMs: 20_000, what: "the recovery" });
    await get("/recorded-again");
    const [entry] = await weir.waitForEntries(1, "/recorded-again");
    assert.ok(entry);
    assert.deepEqual(await weir.body(entry, "response"), body);
    // Entries that could not be written are counted, or were queued until they could be.
    const kept = (await weir.entries("/still/")).length;
    assert.ok(kept + (await weir.stats()).entries_lost >= 30, `${kept} of 30 are there, and the rest is not counted`);
    assert.ok((await weir.entries("/before")).length === 1, "earlier entries are kept");
  } finally {
    await disk.remove();
  }
});

test("a stop that loses entries to a full disk prints their number and exits with 1", async (context) => {
  const disk = await smallDisk();
  if (disk === undefined) return context.skip("needs the right to mount a file system");
  try {
    await using origin = await startOrigin({ handler: (_request, response) => response.end("disk") });
    await using weir = await startWeir({ dataDir: `${disk.path}/data` });
    await writeFile(`${disk.path}/filler`, Buffer.alloc(64e6)).catch(() => undefined);
    const client = proxyClient(weir.proxyPort);
    await waitUntil(
      async () => {
        await client.fetch(origin.url);
        return !(await weir.stats()).storage_ok;
      },
      { timeoutMs: 20_000, what: "the report of a full disk" },
    );
    const { code, stderr } = await weir.stop();
    assert.equal(code, 1);
    assert.match(stderr, /ERROR (?:1 entry|\d+ entries) could not be stored and are lost: the disk is full/);
    assert.match(stderr, /^weir: (?:1 entry|\d+ entries) could not be stored and are lost: the disk is full/m);
  } finally {
    await disk.remove();
  }
});
