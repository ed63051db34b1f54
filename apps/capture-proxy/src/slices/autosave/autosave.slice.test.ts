import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { AutoSaveStatus, CaptureSession, SnapshotResult, TaskProgress } from "@headworks/capture-contract";
import { runProcess, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { pino } from "pino";
import type { StoreRig } from "#storage/store-rig.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import type { SliceTask } from "#slice.ts";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { beginSession, openTemporaryStore, testsSharing } from "../../../test/shared-rig.ts";
import { createAutosaveSlice } from "./autosave.slice.ts";

interface Rig extends AsyncDisposable {
  readonly api: ApiRig;
  readonly stored: StoreRig;
  readonly backups: string;
  readonly tasks: TaskProgress[];
  readonly task: SliceTask;
  readonly stop: AbortController;
  files(): string[];
  status(): Promise<AutoSaveStatus>;
  patch(body: object): Promise<AutoSaveStatus>;
  snapshot(): Promise<SnapshotResult>;
  /** Runs one interval and resolves at the end of its snapshot. */
  cycle(): Promise<void>;
}

const INTERVAL_MS = 300_000;

interface RigOptions {
  readonly wrap?: (store: CaptureStore) => CaptureStore;
  /** Receives the log lines. */
  readonly onLine?: (line: string) => void;
  readonly savedSettings?: object;
}

async function startAutosave(
  stored: StoreRig,
  flags: Record<string, string> = {},
  { wrap = (store) => store, onLine = () => undefined, savedSettings = {} }: RigOptions = {},
): Promise<Rig> {
  const tasks: TaskProgress[] = [];
  let task: SliceTask | undefined;
  const stop = new AbortController();
  const api = await startApi({
    flags,
    savedSettings,
    slices: (host) => {
      const events: typeof host.events = {
        traffic: (event) => host.events.traffic(event),
        changed: (topic) => host.events.changed(topic),
        notice: () => undefined,
        hasListeners: false,
        task: async (start, run) =>
          await run((soFar) => {
            tasks.push({ id: "", kind: start.kind, total_bytes: null, done: false, error: null, ...soFar });
          }),
      };
      const log = pino({}, { write: (line) => onLine((JSON.parse(line) as { msg: string }).msg) });
      const slice = createAutosaveSlice({ ...host, log, events, store: wrap(stored.store) });
      task = slice.task;
      return [slice];
    },
  });
  assert.ok(task);
  api.clock.jumpWallClock(Date.now() - api.clock.now());
  task.start(stop.signal);
  const backups = api.directory.file("backups");
  const rig: Rig = {
    api,
    stored,
    backups,
    tasks,
    task,
    stop,
    files: () => (existsSync(backups) ? readdirSync(backups).sort() : []),
    status: async () => (await api.call("GET", "/api/autosave")).json as AutoSaveStatus,
    patch: async (body) => {
      const { status, json } = await api.call("PATCH", "/api/autosave", body);
      assert.equal(status, 200, JSON.stringify(json));
      return json as AutoSaveStatus;
    },
    snapshot: async () => {
      const { status, json } = await api.call("POST", "/api/autosave/snapshot");
      assert.equal(status, 200, JSON.stringify(json));
      return json as SnapshotResult;
    },
    cycle: async () => {
      const { snapshots_written: written, snapshots_failed: failed } = await rig.status();
      await api.clock.advance(INTERVAL_MS);
      await waitUntil(async () => {
        const { snapshots_written, snapshots_failed, saving } = await rig.status();
        return !saving && snapshots_written + snapshots_failed > written + failed;
      });
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await task?.stopped?.();
      await api[Symbol.asyncDispose]();
    },
  };
  return rig;
}

/** The store with one method replaced. */
function withMethod<K extends "exportHar" | "exportSession">(
  store: CaptureStore,
  method: K,
  instead: CaptureStore[K],
): CaptureStore {
  return new Proxy(store, {
    get(target, name) {
      if (name === method) return instead;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

const SEVEN = {
  enabled: false,
  interval_seconds: 300,
  export_format: "har",
  max_backups: 10,
  rotate_after_requests: null,
  rotate_after_minutes: null,
};

function settingsOf(status: AutoSaveStatus): object {
  const { enabled, interval_seconds, export_format, max_backups, rotate_after_requests, rotate_after_minutes } = status;
  return { enabled, interval_seconds, export_format, max_backups, rotate_after_requests, rotate_after_minutes };
}

const inSession = testsSharing("auto-save", openTemporaryStore, beginSession);

inSession(
  "the seven settings have the specification's defaults, and a change leaves alone what it does not name",
  async (stored) => {
    await using rig = await startAutosave(stored);
    const first = await rig.status();
    assert.deepEqual(settingsOf(first), SEVEN);
    assert.equal(first.output_dir, rig.backups);
    await rig.patch({ rotate_after_requests: 1000, rotate_after_minutes: 60 });
    await rig.patch({ export_format: "session" });
    const changed = await rig.patch({ max_backups: 3, output_dir: "/srv/backups" });
    assert.deepEqual(settingsOf(changed), {
      ...SEVEN,
      export_format: "session",
      max_backups: 3,
      rotate_after_requests: 1000,
      rotate_after_minutes: 60,
    });
    assert.equal((await rig.patch({ rotate_after_requests: 0 })).rotate_after_requests, null);
    const cleared = await rig.patch({ rotate_after_minutes: null, output_dir: null });
    assert.deepEqual([cleared.rotate_after_minutes, cleared.output_dir], [null, rig.backups]);
    // Sending back the status changes nothing.
    assert.deepEqual(await rig.patch(cleared), cleared);
    assert.equal(rig.api.settings.configured.auto_save.output_dir, null);
  },
);

inSession("settings that are not understood are refused, and nothing is applied", async (stored) => {
  await using rig = await startAutosave(stored);
  const cases: readonly (readonly [body: object, path: string])[] = [
    [{ export_format: "zip" }, "body/export_format"],
    [{ interval_seconds: 0 }, "body/interval_seconds"],
    [{ max_backups: 5, rotate_after_requests: 1.5 }, "body/rotate_after_requests"],
    [{ rotate_after_minutes: "60" }, "body/rotate_after_minutes"],
    [{ max_backups: 0 }, "body/max_backups"],
    [{ enabled: true, output_dir: "backups" }, "body/output_dir"],
    [{ interval: 5 }, "body/interval"],
  ];
  for (const [body, path] of cases) {
    const { status, json } = await rig.api.call("PATCH", "/api/autosave", body);
    const { code, details } = json as { code: string; details: { path: string }[] };
    assert.deepEqual([status, code, details[0]?.path], [400, "VALIDATION_ERROR", path], JSON.stringify(body));
  }
  assert.deepEqual(settingsOf(await rig.status()), SEVEN);
});

inSession("switching on and another interval wait for a restart, and the status says so", async (stored) => {
  await using rig = await startAutosave(stored);
  rig.stored.add();
  const changed = await rig.patch({ enabled: true, interval_seconds: 60 });
  assert.deepEqual(
    [changed.enabled, changed.running, changed.restart_pending, changed.next_snapshot],
    [true, false, true, null],
  );
  await rig.api.clock.advance(INTERVAL_MS * 2);
  assert.deepEqual(rig.files(), []);
  assert.equal((await rig.patch({ enabled: false, interval_seconds: 300 })).restart_pending, false);
});

inSession("switching off waits for a restart; the other settings hold from the next cycle on", async (stored) => {
  await using rig = await startAutosave(stored, {}, { savedSettings: { auto_save: { enabled: true } } });
  rig.stored.add();
  const before = await rig.status();
  assert.equal(Date.parse(before.next_snapshot ?? ""), rig.api.clock.now() + INTERVAL_MS);
  await rig.cycle();
  assert.match(rig.files().join(), /^session-\d{8}-\d{6}\.har$/);
  await rig.patch({ enabled: false, export_format: "session", max_backups: 1 });
  await rig.cycle();
  assert.match(rig.files().join(), /^session-\d{8}-\d{6}\.json$/);
  const after = await rig.status();
  assert.deepEqual([after.snapshots_written, after.running, after.restart_pending], [2, true, true]);
  assert.equal(after.last_snapshot, new Date(rig.api.clock.now()).toISOString());
});

inSession(
  "a change of what a flag gives waits for no restart, since none applies it, and the status names the flag",
  async (stored) => {
    await using rig = await startAutosave(stored, { "auto-save-enabled": "true", "auto-save-max-backups": "3" });
    assert.deepEqual((await rig.status()).overridden_by, {});
    const changed = await rig.patch({ enabled: false, max_backups: 5 });
    assert.deepEqual(
      [changed.enabled, changed.running, changed.restart_pending, changed.overridden_by],
      [false, true, false, { enabled: "flag", max_backups: "flag" }],
    );
    const both = await rig.patch({ interval_seconds: 60 });
    assert.deepEqual([both.restart_pending, both.overridden_by], [true, changed.overridden_by]);
    // Sending back the status changes nothing.
    assert.deepEqual((await rig.patch({ ...both, enabled: true, max_backups: 3 })).overridden_by, {});
  },
);

inSession(
  "a snapshot that is asked for holds everything recorded before, and restores in both formats",
  async (stored) => {
    await using rig = await startAutosave(stored);
    for (let index = 0; index < 5; index += 1) rig.stored.add({ path: `/${index}`, responseBody: [`answer ${index}`] });
    const har = await rig.snapshot();
    await rig.patch({ export_format: "session" });
    const native = await rig.snapshot();
    assert.deepEqual([har.success, har.message, har.entries, native.entries], [true, "Snapshot saved", 5, 5]);
    assert.deepEqual([har.output_dir, har.size_bytes], [rig.backups, readFileSync(har.path).length]);
    const { store } = rig.stored;
    const options = {
      sessionName: "back",
      switchSession: false,
      signal: new AbortController().signal,
      onProgress: () => undefined,
    };
    async function* file(path: string): AsyncGenerator<Uint8Array> {
      yield readFileSync(path);
    }
    const fromHar = await store.importHar(file(har.path), options);
    const fromNative = await store.importSession(file(native.path), options);
    assert.deepEqual([fromHar.imported_count, fromHar.skipped_count, fromNative.imported_count], [5, 0, 5]);
    const rows = await rig.stored.rows({ session_id: fromNative.session_id });
    const entry = await rig.stored.entry(rows.rows[0]?.id ?? "");
    assert.match(entry?.response?.body ?? "", /^answer \d$/);
  },
);

inSession(
  "a session that has enough entries is followed by a new one, and is what the snapshot holds",
  async (stored) => {
    await using rig = await startAutosave(stored, {
      "auto-save-enabled": "true",
      "auto-save-rotate-after-requests": "3",
      "auto-save-export-format": "session",
    });
    const { store } = rig.stored;
    const first = store.activeSessionId;
    rig.stored.add();
    rig.stored.add();
    await rig.cycle();
    assert.equal(store.activeSessionId, first, "two entries are not enough");
    rig.stored.add();
    await rig.cycle();
    const second = store.activeSessionId;
    assert.notEqual(second, first);
    const status = await rig.status();
    assert.equal(status.last_rotation, new Date(rig.api.clock.now()).toISOString());
    const document = JSON.parse(readFileSync(status.last_snapshot_path ?? "", "utf8")) as {
      session: { id: string };
      entries: unknown[];
    };
    assert.deepEqual([document.session.id, document.entries.length], [first, 3]);
    rig.stored.add();
    await store.flush();
    const counts = async (): Promise<(number | undefined)[]> =>
      await Promise.all([first, second].map(async (id) => (await store.getSession(id))?.request_count));
    assert.deepEqual(await counts(), [3, 1], "the old session is kept, later traffic goes to the new one");
    await rig.snapshot();
    await rig.snapshot();
    assert.equal(store.activeSessionId, second, "only cycles rotate");
  },
);

inSession(
  "a session that was followed by another and could not be saved is saved by the next cycle that can",
  async (stored) => {
    await using rig = await startAutosave(stored, {
      "auto-save-enabled": "true",
      "auto-save-rotate-after-requests": "1",
      "auto-save-export-format": "session",
    });
    const { store } = rig.stored;
    const first = store.activeSessionId;
    rig.stored.add();
    writeFileSync(rig.backups, "a file stands here");
    await rig.cycle();
    const second = store.activeSessionId;
    assert.notEqual(second, first);
    rmSync(rig.backups);
    rig.stored.add();
    await rig.cycle();
    assert.deepEqual(savedSessions(rig), [first, second].sort());
  },
);

/** Sessions in the snapshots, sorted. */
function savedSessions(rig: Rig): string[] {
  const documents = rig.files().map((name) => readFileSync(`${rig.backups}/${name}`, "utf8"));
  return documents.map((text) => (JSON.parse(text) as { session: { id: string } }).session.id).sort();
}

/** Rotates with each request; snapshots of `tooLarge` sessions fail with a full disk. `lines` collects the log. */
async function startRotating(stored: StoreRig, tooLarge: ReadonlySet<string>, lines: string[]): Promise<Rig> {
  const wrap = (store: CaptureStore): CaptureStore =>
    withMethod(store, "exportSession", async (...given) => {
      if (tooLarge.has(given[0])) throw Object.assign(new Error("write"), { code: "ENOSPC" });
      return await store.exportSession(...given);
    });
  return await startAutosave(
    stored,
    {
      "auto-save-enabled": "true",
      "auto-save-rotate-after-requests": "1",
      "auto-save-export-format": "session",
    },
    { wrap, onLine: (line) => lines.push(line) },
  );
}

inSession(
  "a session that cannot be saved does not block others from being saved and rotated, and is reported until it is saved",
  async (stored) => {
    const tooLarge = new Set<string>();
    const lines: string[] = [];
    await using rig = await startRotating(stored, tooLarge, lines);
    const { store } = rig.stored;
    const first = store.activeSessionId;
    tooLarge.add(first);
    rig.stored.add();
    await rig.cycle();
    const second = store.activeSessionId;
    const { last_error: reason } = await rig.status();
    assert.match(reason ?? "", /^The replaced session “.+” is not saved: The disk is full$/);
    rig.stored.add();
    await rig.cycle();
    const third = store.activeSessionId;
    assert.equal(new Set([first, second, third]).size, 3, "the second one was rotated");
    assert.deepEqual(savedSessions(rig), [second]);
    const during = await rig.status();
    assert.deepEqual([during.last_error, during.snapshots_written, during.snapshots_failed], [reason, 1, 2]);
    assert.deepEqual(lines, [
      "The session is saved and replaced by a new one",
      "A replaced session could not be saved; it will be retried",
      "The session is saved and replaced by a new one",
    ]);
    tooLarge.clear();
    await rig.cycle();
    const after = await rig.status();
    assert.deepEqual([after.last_error, after.snapshots_written, after.snapshots_failed], [null, 3, 2]);
    assert.deepEqual(savedSessions(rig), [first, second, third].sort());
    assert.deepEqual(lines.slice(3), ["A replaced session is saved now"]);
  },
);

inSession(
  "each cycle retries another one of several owed sessions, and the active one's failure is reported as well",
  async (stored) => {
    const tooLarge = new Set<string>();
    const lines: string[] = [];
    await using rig = await startRotating(stored, tooLarge, lines);
    const { store } = rig.stored;
    const sessions: string[] = [];
    for (let cycle = 0; cycle < 2; cycle += 1) {
      sessions.push(store.activeSessionId);
      tooLarge.add(store.activeSessionId);
      rig.stored.add();
      await rig.cycle();
    }
    const [first = "", second = ""] = sessions;
    const third = store.activeSessionId;
    tooLarge.add(third);
    lines.length = 0;
    await rig.cycle();
    assert.equal((await rig.status()).last_error, "The disk is full");
    tooLarge.delete(second);
    await rig.cycle();
    await rig.cycle();
    assert.deepEqual(savedSessions(rig), [second], "the first one does not stand before it");
    assert.deepEqual(lines, ["A snapshot could not be saved", "A replaced session is saved now"]);
    tooLarge.delete(third);
    await rig.cycle();
    assert.equal(lines.at(-1), "Snapshots are saved again");
    assert.match((await rig.status()).last_error ?? "", /^The replaced session .+ is not saved/);
    await store.deleteSession(first);
    await rig.cycle();
    assert.equal((await rig.status()).last_error, null, "what was deleted is not owed");
  },
);

inSession(
  "a session that is old enough is followed by a new one, by the wall clock; an empty one is not",
  async (stored) => {
    await using rig = await startAutosave(stored, {
      "auto-save-enabled": "true",
      "auto-save-rotate-after-minutes": "60",
    });
    const { store } = rig.stored;
    const first = store.activeSessionId;
    rig.api.clock.jumpWallClock(61 * 60_000);
    await rig.cycle();
    assert.equal(store.activeSessionId, first, "nothing was recorded");
    rig.api.clock.jumpWallClock(-70 * 60_000);
    rig.stored.add();
    await rig.cycle();
    assert.equal(store.activeSessionId, first, "the clock went back");
    rig.api.clock.jumpWallClock(70 * 60_000);
    await rig.cycle();
    assert.notEqual(store.activeSessionId, first);
    const sessions = (await store.listSessions()).map(({ id, request_count: count }: CaptureSession) => [id, count]);
    assert.deepEqual(
      sessions.find(([id]) => id === first),
      [first, 1],
    );
  },
);

/** Delays the first piece of each export until the test opens its gate. */
function slowly(gates: PromiseWithResolvers<void>[]): (store: CaptureStore) => CaptureStore {
  return (store) =>
    withMethod(store, "exportHar", async (...given) => {
      const document = await store.exportHar(...given);
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      async function* held(): AsyncGenerator<Uint8Array> {
        await gate.promise;
        yield* document.chunks;
      }
      return { total: document.total, chunks: held() };
    });
}

inSession("a cycle that is due during a snapshot is skipped, and requests share the next snapshot", async (stored) => {
  const gates: PromiseWithResolvers<void>[] = [];
  await using rig = await startAutosave(stored, { "auto-save-enabled": "true" }, { wrap: slowly(gates) });
  rig.stored.add();
  await rig.api.clock.advance(INTERVAL_MS);
  await waitUntil(() => gates.length === 1);
  await rig.api.clock.advance(INTERVAL_MS * 3);
  const during = await rig.status();
  assert.deepEqual([during.saving, during.cycles_missed, during.snapshots_written], [true, 3, 0]);
  rig.stored.add();
  const asked = [rig.snapshot(), rig.snapshot(), rig.snapshot()];
  await rig.status();
  gates[0]?.resolve();
  await waitUntil(() => gates.length === 2);
  gates[1]?.resolve();
  const results = await Promise.all(asked);
  assert.deepEqual(
    results.map(({ entries }) => entries),
    [2, 2, 2],
  );
  assert.equal(new Set(results.map(({ path }) => path)).size, 1, "one snapshot for all who waited");
  assert.equal(gates.length, 2);
  assert.equal(rig.files().length, 2);
});

inSession("a service that stops leaves no half snapshot and waits for nothing", async (stored) => {
  const gates: PromiseWithResolvers<void>[] = [];
  await using rig = await startAutosave(stored, { "auto-save-enabled": "true" }, { wrap: slowly(gates) });
  rig.stored.add();
  await rig.api.clock.advance(INTERVAL_MS);
  await waitUntil(() => gates.length === 1 && rig.files().length === 1);
  assert.match(rig.files().join(), /^\.weir-snapshot-/);
  rig.stop.abort();
  gates[0]?.resolve();
  await rig.task.stopped?.();
  assert.deepEqual(rig.files(), []);
});

inSession("a snapshot failure is in the response and in the status until a snapshot is saved", async (stored) => {
  await using rig = await startAutosave(stored, { "auto-save-enabled": "true" });
  rig.stored.add();
  writeFileSync(rig.backups, "a file stands here");
  const { status, json } = await rig.api.call("POST", "/api/autosave/snapshot");
  assert.deepEqual([status, (json as { code: string }).code], [503, "SERVICE_UNAVAILABLE"]);
  assert.match((json as { error: string }).error, /^The snapshot was not saved: A file has the name of the directory/);
  await rig.cycle();
  const failed = await rig.status();
  assert.deepEqual([failed.snapshots_failed, failed.last_snapshot], [2, null]);
  assert.match(failed.last_error ?? "", /^A file has the name/);
  rmSync(rig.backups);
  await rig.cycle();
  const mended = await rig.status();
  assert.deepEqual([mended.last_error, mended.snapshots_written], [null, 1]);
});

test("a full disk keeps the older snapshots, leaves no half one, and is mended by room", async (context) => {
  await using directory = await temporaryDirectory();
  const disk = directory.file("disk");
  mkdirSync(disk);
  const isRoot = process.platform === "linux" && process.getuid?.() === 0;
  const mounted = isRoot ? await runProcess("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", disk]) : undefined;
  if (mounted?.code !== 0) return context.skip("needs the right to mount a tmpfs");
  try {
    await using stored = await openTemporaryStore();
    await using rig = await startAutosave(stored, { "auto-save-output-dir": disk });
    rig.stored.add();
    const first = await rig.snapshot();
    rig.stored.add({ responseBody: ["x".repeat(200_000)] });
    writeFileSync(`${disk}/ballast`, Buffer.alloc(1_900_000));
    const { status, json } = await rig.api.call("POST", "/api/autosave/snapshot");
    assert.equal(status, 503);
    assert.match((json as { error: string }).error, /The disk is full/);
    assert.deepEqual(readdirSync(disk).sort(), ["ballast", first.path.slice(disk.length + 1)]);
    assert.equal((await rig.status()).last_error, "The disk is full");
    rmSync(`${disk}/ballast`);
    assert.equal((await rig.snapshot()).entries, 2);
  } finally {
    await runProcess("umount", ["-l", disk]);
  }
});

inSession("snapshots of the same second stay apart, and pruning keeps as many as configured", async (stored) => {
  await using rig = await startAutosave(stored, { "auto-save-max-backups": "3" });
  rig.stored.add();
  const results = [];
  for (let index = 0; index < 5; index += 1) results.push(await rig.snapshot());
  const kept = results.slice(-3).map(({ path }) => path.slice(rig.backups.length + 1));
  assert.deepEqual(rig.files(), kept.sort(), "three files, one for each of the newest three");
  assert.deepEqual(
    results.map(({ pruned }) => pruned.length),
    [0, 0, 0, 1, 1],
  );
});

test(
  "a large session tells how far its snapshot is, and takes no more memory than a small one",
  { timeout: 300_000 },
  async () => {
    await using stored = await openTemporaryStore();
    await using rig = await startAutosave(stored);
    const { store } = rig.stored;
    const body = "x".repeat(3000);
    const add = async (count: number): Promise<void> => {
      for (let added = 0; added < count; added += 1) {
        rig.stored.add({ responseBody: [body] });
        if (added % 1000 === 0) await waitUntil(() => store.status().backlogEntries < 5000, { timeoutMs: 120_000 });
      }
      await store.flush();
    };
    await add(3500);
    // The reading thread starts, and its heap grows to what it keeps.
    await rig.snapshot();
    await add(31_500);
    const earlier = rig.tasks.length;
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    let max = 0;
    const sampler = setInterval(() => (max = Math.max(max, process.memoryUsage().rss)), 20);
    const result = await rig.snapshot();
    clearInterval(sampler);
    assert.equal(result.entries, 35_000);
    assert.ok(result.size_bytes > 150_000_000, String(result.size_bytes));
    const grownMb = (max - before) / 1e6;
    assert.ok(
      grownMb < 100,
      `grew by ${grownMb.toFixed(0)} MB while ${(result.size_bytes / 1e6).toFixed(0)} MB were written`,
    );
    const entries = rig.tasks.slice(earlier).map((task) => task.entries);
    assert.ok(entries.length > 50);
    assert.deepEqual(
      entries,
      entries.toSorted((one, other) => one - other),
    );
    assert.deepEqual([rig.tasks[0]?.kind, entries.at(-1)], ["snapshot", 35_000]);
  },
);

test("a directory without write permission is reported with the reason", async (context) => {
  if (process.getuid?.() === 0) return context.skip("root may write everywhere");
  await using stored = await openTemporaryStore();
  await using rig = await startAutosave(stored);
  mkdirSync(rig.backups);
  chmodSync(rig.backups, 0o500);
  const { json } = await rig.api.call("POST", "/api/autosave/snapshot");
  assert.match((json as { error: string }).error, /This user may not write there/);
  chmodSync(rig.backups, 0o700);
});
