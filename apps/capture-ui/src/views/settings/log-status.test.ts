import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogStatus } from "@headworks/capture-contract";
import { archivesText, logStatus, trafficLogText } from "./log-status.ts";

function status(changes: Partial<LogStatus> = {}): LogStatus {
  return {
    enabled: true,
    rotation: { mode: "daily" },
    rotation_label: "daily",
    max_files: 7,
    max_file_size_mb: 100,
    json_format: false,
    async_writing: true,
    async_mode: "drop_newest",
    async_buffer_size: 100,
    restart_pending: [],
    overridden_by: {},
    async: {
      enabled: true,
      mode: "drop_newest",
      buffer_size: 100,
      buffer_depth: 0,
      high_water: 0,
      dropped_events: 0,
      written_events: 0,
    },
    log_dir: "/logs",
    current_file: { path: "/logs/weir.log", size_bytes: 5 },
    archived_files: [],
    archived_count: 0,
    problem: null,
    verbosity: "info",
    debug_logging: { enabled: true, level: "full", host_filter: [], redact_headers: [], redact_bodies: false },
    traffic_events: { logged: 1200, dropped: 0, waiting: 0 },
    ...changes,
  };
}

test("the log is written, waits for a restart, is in trouble, or has no file", () => {
  assert.deepEqual(logStatus(status()), { tone: "good", text: "Written to /logs/weir.log" });
  assert.match(logStatus(status({ restart_pending: ["rotation"] })).text, /require a restart$/);
  assert.equal(logStatus(status({ problem: "the disk is full" })).tone, "bad");
  assert.equal(logStatus(status({ current_file: null })).tone, "idle");
});

test("traffic in the log is told with its depth and hosts, and when the level hides it", () => {
  const debug = status().debug_logging;
  assert.equal(trafficLogText(status()), "full of all hosts, 1,200 events since start");
  assert.match(trafficLogText(status({ debug_logging: { ...debug, host_filter: ["*.a"] } })), /^full of \*\.a,/);
  assert.match(
    trafficLogText(status({ debug_logging: { ...debug, host_filter: ["a", "b"] } })),
    /^full of 2 patterns,/,
  );
  assert.equal(trafficLogText(status({ debug_logging: { ...debug, enabled: false } })), "not logged");
  assert.match(trafficLogText(status({ verbosity: "warn" })), /only level warn/);
});

test("old files are counted with their size", () => {
  assert.equal(archivesText(status()), "none yet");
  const file = { name: "a", path: "/a", size_bytes: 2048, modified: "2026-01-01T00:00:00.000Z" };
  assert.match(archivesText(status({ archived_files: [file, file], archived_count: 2 })), /^2 of at most 7, 4/);
});
