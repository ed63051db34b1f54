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
    [{ enabled: false, writing: false }, "idle", "Off: no files are written"],
    [{ writing: false }, "bad", "On, but files are being dropped"],
    [{}, "good", "On: writing responses of all hosts to /srv/mirror"],
    [{ host_filter: ["a.test"] }, "good", "On: writing responses of a.test to /srv/mirror"],
    [{ host_filter: ["a", "b"] }, "good", "On: writing responses of hosts matching 2 patterns to /srv/mirror"],
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
    [{}, "idle", /^Off: snapshots are saved only on request$/u],
    [{ enabled: true, overridden_by: { enabled: "flag" } }, "idle", /^Off: snapshots are saved only on request$/u],
    [{ running: true, overridden_by: { enabled: "flag" } }, "good", /^Saving snapshots at the configured interval$/u],
    [{ enabled: true }, "waiting", /^Off; enabled after a restart$/u],
    [
      { enabled: true, running: true, next_snapshot: "2026-11-21T10:00:00.000Z" },
      "good",
      /^Saving snapshots at the configured interval; next snapshot at .+$/u,
    ],
    [{ running: true }, "good", /until restart$/u],
    [{ running: true, last_error: "The disk is full" }, "bad", /^Could not save a session$/u],
    [{ saving: true, last_error: "The disk is full" }, "waiting", /^Writing a snapshot$/u],
  ];
  for (const [change, tone, text] of cases) {
    const status = autoSaveStatus({ ...autoSave, ...change });
    assert.equal(status.tone, tone);
    assert.match(status.text, text);
  }
});

test("the newest snapshot is told with its size", () => {
  assert.equal(lastSnapshotText(autoSave), "none since start");
  const saved = {
    ...autoSave,
    last_snapshot: "2026-11-21T10:00:00.000Z",
    last_snapshot_entries: 1,
    last_snapshot_bytes: 2048,
  };
  assert.match(lastSnapshotText(saved), /, 1 request, 2(?:\.0)? k/iu);
});
