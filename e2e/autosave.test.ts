import assert from "node:assert/strict";
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import type { AutoSaveStatus, CaptureSession, ImportResult, SnapshotResult } from "@headworks/capture-contract";
import { peer, runProcess, startOrigin, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { Cleanups, startWeir, workDirectory } from "./rig.ts";
import type { Weir } from "./rig.ts";

const curl = peer("curl");
const cleanups = new Cleanups();
after(() => cleanups.run());

async function run(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runProcess(curl.path, ["-sSf", ...args], { timeoutMs: 60_000 });
  assert.equal(code, 0, stderr + stdout);
  return stdout;
}

async function call<T>(weir: Weir, method: string, path: string, body?: object): Promise<T> {
  const json = body === undefined ? [] : ["-H", "content-type: application/json", "-d", JSON.stringify(body)];
  return JSON.parse(await run(["-X", method, ...json, `${weir.apiUrl}/api${path}`])) as T;
}

function snapshots(directory: string): string[] {
  return existsSync(directory)
    ? readdirSync(directory)
        .filter((name) => name.startsWith("session-"))
        .sort()
    : [];
}

test(
  "snapshots run on schedule after a restart, and are pruned, rotated and restored by import",
  { skip: curl.skip, timeout: 60_000 },
  async () => {
    const origin = cleanups.use(
      await startOrigin({ handler: (request, response) => void response.end(`response to ${request.url}`) }),
    );
    const data = await workDirectory(cleanups);
    const dataDir = data.file("data");
    const first = await startWeir({ dataDir });
    const change = {
      enabled: true,
      interval_seconds: 1,
      export_format: "session",
      max_backups: 3,
      rotate_after_requests: 4,
    };
    const changed = await call<AutoSaveStatus>(first, "PATCH", "/autosave", change);
    assert.deepEqual([changed.enabled, changed.running, changed.restart_pending], [true, false, true]);
    await first.stop();

    const weir = cleanups.use(await startWeir({ dataDir }));
    const backups = join(dataDir, "backups");
    const [session] = await call<CaptureSession[]>(weir, "GET", "/sessions");
    await run(["-o", "/dev/null", "-x", weir.proxyUrl, `${origin.url}/[0-3]`]);
    const rotated = await waitUntil(
      async () => {
        const status = await weir.get<AutoSaveStatus>("/autosave");
        return status.last_rotation !== null && !status.saving && status.last_snapshot_entries === 4
          ? status
          : undefined;
      },
      { timeoutMs: 20_000 },
    );
    assert.match(rotated.last_snapshot_path ?? "", /\/session-\d{8}-\d{6}\.json$/);
    const document = readFileSync(rotated.last_snapshot_path ?? "");
    assert.equal((JSON.parse(document.toString()) as { session: { id: string } }).session.id, session?.id);
    const sessions = await call<CaptureSession[]>(weir, "GET", "/sessions");
    const current = sessions.map(
      ({ id, is_current: isCurrent }) => `${id === session?.id ? "old" : "new"} ${isCurrent}`,
    );
    assert.deepEqual(current.toSorted(), ["new true", "old false"]);
    await waitUntil(async () => (await weir.get<AutoSaveStatus>("/autosave")).snapshots_written >= 4, {
      timeoutMs: 20_000,
    });
    assert.ok(snapshots(backups).length <= 3, snapshots(backups).join());

    await call(weir, "PATCH", "/autosave", { export_format: "har" });
    await run(["-o", "/dev/null", "-x", weir.proxyUrl, `${origin.url}/last`]);
    await weir.waitForEntries(1, "/last");
    const har = await call<SnapshotResult>(weir, "POST", "/autosave/snapshot");
    assert.match(har.path, /\/session-\d{8}-\d{6}\.har$/);
    const harCopy = data.file("copy.har");
    const nativeCopy = data.file("copy.json");
    copyFileSync(har.path, harCopy);
    writeFileSync(nativeCopy, document);

    const other = cleanups.use(await startWeir());
    const type = ["-H", "content-type: application/json"];
    const fromHar = JSON.parse(
      await run([...type, "--data-binary", `@${harCopy}`, `${other.apiUrl}/api/traffic/import/har`]),
    ) as ImportResult;
    assert.deepEqual([fromHar.imported_count, fromHar.skipped_count], [har.entries, 0]);
    const restored = JSON.parse(
      await run([
        ...type,
        "--data-binary",
        `@${nativeCopy}`,
        `${other.apiUrl}/api/sessions/import?switch_session=true`,
      ]),
    ) as CaptureSession;
    assert.equal(restored.request_count, 4);
    const entries = await other.entries();
    assert.deepEqual(
      entries.map(({ response }) => response?.status_code),
      [200, 200, 200, 200],
    );
    assert.equal((await other.body(entries[0] ?? assert.fail("no entry"), "response")).toString(), "response to /0");
  },
);

test(
  "after a kill at any moment of a snapshot, all existing snapshots are whole, and the next start continues",
  { skip: curl.skip, timeout: 120_000 },
  async () => {
    await using data = await temporaryDirectory();
    const dataDir = data.file("data");
    const body = "x".repeat(60_000);
    const origin = cleanups.use(await startOrigin({ handler: (_request, response) => void response.end(body) }));
    const args = [
      "--auto-save-enabled",
      "--auto-save-interval-seconds=1",
      "--auto-save-export-format=session",
      "--auto-save-max-backups=100",
    ];
    const backups = join(dataDir, "backups");
    let halves = 0;
    for (let round = 0; round < 3; round += 1) {
      await using weir = await startWeir({ dataDir, args });
      if (round === 0) {
        const urls = `${origin.url}/[1-500]`;
        await run(["-o", "/dev/null", "-x", weir.proxyUrl, urls]);
        await weir.waitForEntries(500);
      }
      const isSaving = (): boolean =>
        existsSync(backups) && readdirSync(backups).some((name) => name.startsWith(".weir-snapshot-"));
      await waitUntil(isSaving, { timeoutMs: 20_000, what: "a snapshot being written" });
      await weir.process.stop("SIGKILL");
      if (isSaving()) halves += 1;
    }
    assert.ok(halves > 0, "at least one was killed during a snapshot");
    for (const name of snapshots(backups)) {
      const document = JSON.parse(readFileSync(join(backups, name), "utf8")) as { entries: unknown[] };
      assert.ok(document.entries.length > 0, name);
    }
    await using weir = await startWeir({ dataDir, args });
    const saved = await call<SnapshotResult>(weir, "POST", "/autosave/snapshot");
    assert.equal(saved.entries, 500);
    assert.equal((JSON.parse(readFileSync(saved.path, "utf8")) as { entries: unknown[] }).entries.length, 500);
  },
);

test("a stop during a snapshot leaves no partial file", { skip: curl.skip, timeout: 60_000 }, async () => {
  await using data = await temporaryDirectory();
  const dataDir = data.file("data");
  const origin = cleanups.use(
    await startOrigin({ handler: (_request, response) => void response.end("x".repeat(100_000)) }),
  );
  const weir = await startWeir({ dataDir });
  await run(["-o", "/dev/null", "-x", weir.proxyUrl, `${origin.url}/[1-400]`]);
  await weir.waitForEntries(400);
  const backups = join(dataDir, "backups");
  const response = fetch(`${weir.apiUrl}/api/autosave/snapshot`, { method: "POST" }).catch(() => undefined);
  await waitUntil(() => existsSync(backups) && readdirSync(backups).length > 0, { what: "a snapshot being written" });
  const { code } = await weir.stop();
  await response;
  assert.equal(code, 0);
  assert.deepEqual(
    readdirSync(backups).filter((name) => !name.startsWith("session-")),
    [],
  );
});
