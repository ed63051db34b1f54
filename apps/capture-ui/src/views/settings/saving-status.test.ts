import assert from "node:assert/strict";
import { test } from "node:test";
import type { AutoSaveStatus, MirrorStatus } from "@headworks/capture-contract";
import { autoSaveStatus, lastSnapshotText, mirrorStatus } from "./saving-status.ts";

const mirror: MirrorStatus = {
  enabled: true,
  output_dir: "/srv/mirror",
  host_filter: null,
  save_request_bodies: false,
  files_written: 0,
  bytes_written: 0,
  files_dropped: 0,
  queued_files: 0,
  queued_bytes: 0,
  last_error: null,
  last_error_at: null,
  writing: true,
};

test("the mirror says whether it writes, what, and where", () => {
  const cases: readonly (readonly [change: Partial<MirrorStatus>, tone: string, text: string])[] = [
    [{ enabled: false, writing: false }, "idle", "Off: nothing is written to files"],
    [{ writing: false }, "bad", "On, but files are being dropped"],
    [{}, "good", "On: answers of all hosts are written to /srv/mirror"],
    [{ host_filter: ["a.test"] }, "good", "On: answers of a.test are written to /srv/mirror"],
    [
      { host_filter: ["a", "b"] },
      "good",
      "On: answers of hosts that match one of 2 patterns are written to /srv/mirror",
    ],
  ];
  for (const [change, tone, text] of cases) assert.deepEqual(mirrorStatus({ ...mirror, ...change }), { tone, text });
});

const autoSave: AutoSaveStatus = {
  enabled: false,
  interval_seconds: 300,
  export_format: "har",
  output_dir: "/srv/backups",
  max_backups: 10,
  rotate_after_requests: null,
  rotate_after_minutes: null,
  running: false,
  restart_pending: false,
  overridden_by: {},
  saving: false,
  next_snapshot: null,
  last_snapshot: null,
  last_snapshot_path: null,
  last_snapshot_bytes: null,
  last_snapshot_entries: null,
  last_error: null,
  last_error_at: null,
  snapshots_written: 0,
  snapshots_failed: 0,
  last_rotation: null,
  cycles_missed: 0,
};

test("auto save says whether the clock makes snapshots, and what a restart changes", () => {
  const cases: readonly (readonly [change: Partial<AutoSaveStatus>, tone: string, text: RegExp])[] = [
    [{}, "idle", /^Off: snapshots are made only when asked for$/u],
    [{ enabled: true, overridden_by: { enabled: "flag" } }, "idle", /^Off: snapshots are made only when asked for$/u],
    [{ running: true, overridden_by: { enabled: "flag" } }, "good", /^Snapshots are made by the clock$/u],
    [{ enabled: true }, "waiting", /^Off; it is switched on with the next start$/u],
    [
      { enabled: true, running: true, next_snapshot: "2026-11-21T10:00:00.000Z" },
      "good",
      /^Snapshots are made by the clock; the next one at .+$/u,
    ],
    [{ running: true }, "good", /until the next start$/u],
    [{ running: true, last_error: "The disk is full" }, "bad", /^A session could not be saved$/u],
    [{ saving: true, last_error: "The disk is full" }, "waiting", /^A snapshot is being written$/u],
  ];
  for (const [change, tone, text] of cases) {
    const status = autoSaveStatus({ ...autoSave, ...change });
    assert.equal(status.tone, tone);
    assert.match(status.text, text);
  }
});

test("the newest snapshot is told with its size", () => {
  assert.equal(lastSnapshotText(autoSave), "none since the start");
  const saved = {
    ...autoSave,
    last_snapshot: "2026-11-21T10:00:00.000Z",
    last_snapshot_entries: 1,
    last_snapshot_bytes: 2048,
  };
  assert.match(lastSnapshotText(saved), /, 1 entry, 2(?:\.0)? k/iu);
});
