import assert from "node:assert/strict";
import { test } from "node:test";
import type { AutoSaveStatus, LogStatus, MirrorStatus } from "@headworks/capture-contract";
import {
  archivesText,
  autoSaveStatus,
  lastSnapshotText,
  logStatus,
  mirrorStatus,
  proxyProblem,
  socksAddress,
  socksStatus,
  trafficLogText,
  upstreamAddress,
  upstreamStatus,
} from "./section-status.ts";

type Values = Readonly<Record<string, unknown>>;

/** Running settings, and differing configured ones. */
function fields(running: Values, configured: Values = {}) {
  return Object.entries(running).map(([name, value]) => ({
    name,
    running: value,
    value: name in configured ? configured[name] : value,
  }));
}

const SOCKS = { enable_socks: true, socks_port: 1080, socks_auth_username: null, host: "127.0.0.1", allowed_ips: [] };

test("the status of the SOCKS listener includes changes at the next start", () => {
  const cases: readonly [Values, Values, string, RegExp][] = [
    [{ ...SOCKS, enable_socks: false }, {}, "idle", /^Off/u],
    [{ ...SOCKS, enable_socks: false }, { enable_socks: true }, "waiting", /after a restart/u],
    [SOCKS, {}, "good", /port 1080, without a password/u],
    [{ ...SOCKS, socks_auth_username: "ann" }, {}, "good", /credentials of ann/u],
    [SOCKS, { enable_socks: false }, "waiting", /until restart/u],
  ];
  for (const [running, configured, tone, text] of cases) {
    const status = socksStatus(fields(running, configured));
    assert.equal(status.tone, tone);
    assert.match(status.text, text);
  }
});

test("the SOCKS address is reachable by clients, and an open listener is marked", () => {
  assert.equal(socksAddress(fields({ ...SOCKS, enable_socks: false }), "10.0.0.5"), null);
  const cases: readonly [Values, string, boolean][] = [
    [{}, "socks5h://127.0.0.1:1080", false],
    [{ host: "0.0.0.0" }, "socks5h://10.0.0.5:1080", true],
    [{ host: "::" }, "socks5h://10.0.0.5:1080", true],
    [{ host: "::1" }, "socks5h://[::1]:1080", false],
    [{ host: "0.0.0.0", socks_auth_username: "ann" }, "socks5h://10.0.0.5:1080", false],
    [{ host: "0.0.0.0", allowed_ips: ["10.0.0.0/8"] }, "socks5h://10.0.0.5:1080", false],
  ];
  for (const [change, url, isOpen] of cases) {
    assert.deepEqual(socksAddress(fields({ ...SOCKS, ...change }), "10.0.0.5"), { url, isOpen });
  }
});

const UPSTREAM = {
  "upstream_proxy.enabled": true,
  "upstream_proxy.protocol": "http",
  "upstream_proxy.host": "proxy.example",
  "upstream_proxy.port": 3128,
  "upstream_proxy.no_proxy_hosts": [],
};

test("the status of the upstream proxy includes changes at the next start", () => {
  const off = { ...UPSTREAM, "upstream_proxy.enabled": false };
  const cases: readonly [Values, Values, string, RegExp][] = [
    [off, {}, "idle", /directly/u],
    [off, { "upstream_proxy.enabled": true }, "waiting", /http:\/\/proxy\.example:3128 after restart/u],
    [UPSTREAM, {}, "good", /through http:\/\/proxy\.example:3128$/u],
    [{ ...UPSTREAM, "upstream_proxy.no_proxy_hosts": ["a", "b"] }, {}, "good", /except 2 entries/u],
    [UPSTREAM, { "upstream_proxy.enabled": false }, "waiting", /until restart/u],
    [
      UPSTREAM,
      { "upstream_proxy.port": 8080 },
      "waiting",
      /:3128; through http:\/\/proxy\.example:8080 after restart/u,
    ],
  ];
  for (const [running, configured, tone, text] of cases) {
    const status = upstreamStatus(fields(running, configured));
    assert.equal(status.tone, tone, status.text);
    assert.match(status.text, text);
  }
});

test("an upstream proxy without host or port has no address", () => {
  assert.equal(upstreamAddress(fields({ ...UPSTREAM, "upstream_proxy.host": "" }), "configured"), null);
  assert.equal(upstreamAddress(fields({ ...UPSTREAM, "upstream_proxy.port": 0 }), "configured"), null);
  assert.equal(
    upstreamAddress(fields({ ...UPSTREAM, "upstream_proxy.host": "fd00::1" }), "running"),
    "http://[fd00::1]:3128",
  );
});

test("a failure of the upstream proxy is resolved once a server is reached", () => {
  const entry = (id: string, code: string | null, source = "upstream") => ({
    id,
    source,
    failure: code === null ? null : { code, message: "m" },
    response: code === null ? {} : null,
  });
  assert.equal(proxyProblem([entry("1", null), entry("2", "UPSTREAM_REFUSED")]), null);
  assert.deepEqual(proxyProblem([entry("3", "UPSTREAM_PROXY_AUTH"), entry("2", null)])?.isLatest, true);
  // Weir's own responses say nothing about the upstream proxy.
  assert.deepEqual(proxyProblem([entry("4", null, "slice"), entry("3", "UPSTREAM_PROXY_AUTH")])?.isLatest, true);
  const over = proxyProblem([entry("4", null), entry("3", "UPSTREAM_PROXY_AUTH")]);
  assert.deepEqual([over?.entry.id, over?.isLatest], ["3", false]);
});

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

test("the log is written, needs a restart, fails, or has no file", () => {
  assert.deepEqual(logStatus(status()), { tone: "good", text: "Written to /logs/weir.log" });
  assert.match(logStatus(status({ restart_pending: ["rotation"] })).text, /require a restart$/);
  assert.equal(logStatus(status({ problem: "the disk is full" })).tone, "bad");
  assert.equal(logStatus(status({ current_file: null })).tone, "idle");
});

test("logged traffic is described with level and hosts, and whether the log level hides it", () => {
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

test("archived files are counted with their size", () => {
  assert.equal(archivesText(status()), "none yet");
  const file = { name: "a", path: "/a", size_bytes: 2048, modified: "2026-01-01T00:00:00.000Z" };
  assert.match(archivesText(status({ archived_files: [file, file], archived_count: 2 })), /^2 of at most 7, 4/);
});

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

test("the status of the mirror names hosts and directory", () => {
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

test("the status of auto-save includes changes at the next start", () => {
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

test("the newest snapshot is described with its size", () => {
  assert.equal(lastSnapshotText(autoSave), "none since start");
  const saved = {
    ...autoSave,
    last_snapshot: "2026-11-21T10:00:00.000Z",
    last_snapshot_entries: 1,
    last_snapshot_bytes: 2048,
  };
  assert.match(lastSnapshotText(saved), /, 1 request, 2(?:\.0)? k/iu);
});
