/** Where the command of an operation differs from what its name and schema give. */
export interface CommandShape {
  readonly name?: string;
  /** The group of the command, if it is not that of its slice. */
  readonly group?: string;
  /** Body or query properties given as words instead of flags, in order. */
  readonly positional?: readonly string[];
  /** Other flags of properties: `status_code: "-s, --status <code>"`. */
  readonly flags?: Readonly<Record<string, string>>;
  /** Flags that read a property from a file: `source: "--file <file>"`. */
  readonly files?: Readonly<Record<string, string>>;
  /** Values of properties that are not given, where the command line has other defaults than the API. */
  readonly defaults?: Readonly<Record<string, string | number>>;
  /** Properties that have no flag, with all below them: read-only fields that the body tolerates, or second spellings. */
  readonly hidden?: readonly string[];
  /** The property of the response that is the result: a text for pipes, printed alone and unchanged. */
  readonly prints?: string;
  /** The property of the response that tells why the command failed; null for success. */
  readonly failure?: string;
  /** Additional header fields, such as the confirmation that an operation requires: the command itself confirms. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Further commands that do the same with some values set. */
  readonly shortcuts?: readonly CommandShortcut[];
}

/** A further name for an operation with part of its input fixed. */
export interface CommandShortcut {
  readonly name: string;
  readonly summary: string;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly positional?: readonly string[];
}

/** Words that an operation's name repeats because its slice is about them. */
const NOUNS: Readonly<Record<string, readonly string[]>> = {
  traffic: ["traffic"],
  sessions: ["session", "sessions"],
  runs: ["run", "runs"],
  streams: ["stream", "streams"],
  export: ["export"],
  autosave: ["autosave"],
  mirror: ["mirror"],
  cert: ["certificate"],
  config: ["config"],
  capture: ["capture"],
  blocklist: ["blocklist", "block", "entry", "entries"],
  breakpoints: ["breakpoint", "breakpoints"],
  rewrites: ["rewrite", "rewrites"],
  scripts: ["script", "scripts"],
  replay: ["replay"],
  throttle: ["throttle"],
  "ws-traffic": ["ws"],
  upstream: ["upstream"],
  persistence: ["rules"],
  grpc: ["grpc"],
  focus: ["focus", "host", "hosts"],
  logs: ["log", "logs"],
  mocks: ["mock", "mocks"],
  metrics: ["metrics"],
};

const FILTER_FLAGS = { q: "-q, --query <query>", method: "-m, --method <method>", status_code: "-s, --status <codes>" };
const LIMIT_FLAG = { limit: "-l, --limit <count>" };
const SCRIPT_FLAGS = {
  name: "-n, --name <name>",
  source: "-i, --inline <source>",
  hooks: "-H, --hook <hooks>",
  description: "-d, --description <text>",
  "match_filter.url_pattern": "--url-pattern <pattern>",
  "match_filter.host_pattern": "--host-pattern <pattern>",
  "match_filter.path_pattern": "--path-pattern <pattern>",
  "match_filter.method": "-m, --method <method>",
};
const SCRIPT_FILE = { source: "--file <file>" };
const GRPC_FLAGS = { status_code: "-s, --status <code>", limit: "-l, --limit <count>" };

/** State that the responses of mirror, log and auto-save contain besides settings; changes ignore it. */
const MIRROR_SHOWN = [
  "files_written",
  "bytes_written",
  "files_dropped",
  "queued_files",
  "queued_bytes",
  "last_error",
  "last_error_at",
  "writing",
];
const LOGS_SHOWN = [
  "rotation_label",
  "restart_pending",
  "overridden_by",
  "async.enabled",
  "async.buffer_size",
  "async.buffer_depth",
  "async.high_water",
  "async.dropped_events",
  "async.written_events",
  "async.mode",
  "log_dir",
  "current_file",
  "archived_count",
  "problem",
  "verbosity",
  "traffic_events.logged",
  "traffic_events.dropped",
  "traffic_events.waiting",
];
const AUTOSAVE_SHOWN = [
  "running",
  "restart_pending",
  "overridden_by",
  "saving",
  "next_snapshot",
  "last_snapshot",
  "last_snapshot_path",
  "last_snapshot_bytes",
  "last_snapshot_entries",
  "last_error",
  "last_error_at",
  "snapshots_written",
  "snapshots_failed",
  "last_rotation",
  "cycles_missed",
];

/** Parts of a mock's body that are objects, which `--body` takes as JSON, or that must be null. */
const MOCK_OBJECTS = [
  "condition",
  "response_config",
  "expiration",
  "headers",
  "response_script",
  "device_id",
  "response.status_code",
  "response.headers",
  "response.body",
  "response.body_base64",
  "response.body_file",
  "response.delay_ms",
  "response.delay_variance_ms",
  "response.template_enabled",
];

/** A request to try rules on, as an object; its URL and the like have flags. */
const SAMPLE_TOLERATED = [
  "request.headers",
  "request.headers_list",
  "request.host",
  "request.path",
  "request.http_version",
  "request.trailers_list",
  "request.body_size",
  "request.body_stored_size",
  "request.body_state",
  "request.truncated",
];

/** The exceptions, by slice and operation. */
export const COMMAND_SHAPES: Readonly<Record<string, CommandShape>> = {
  "ws-traffic.sendWsMessage": { name: "send" },
  "ws-traffic.closeWsConnection": { name: "close" },
  "ws-traffic.clearWsTraffic": { name: "clear" },
  "ws-traffic.resumeWsMessage": { name: "resume", positional: ["action"] },
  "traffic.listTraffic": {
    flags: { ...FILTER_FLAGS, limit: "-l, --limit <count>" },
    hidden: ["status"],
    shortcuts: [
      { name: "search", summary: "List entries with a text in URL, header fields or bodies", positional: ["search"] },
    ],
  },
  "traffic.countTraffic": { flags: FILTER_FLAGS, hidden: ["status"] },
  "traffic.summarizeTraffic": { name: "summary", flags: FILTER_FLAGS, hidden: ["status"] },
  "traffic.treeTraffic": { flags: FILTER_FLAGS, hidden: ["status"] },
  "traffic.listTrafficRows": { flags: { ...FILTER_FLAGS, limit: "-l, --limit <count>" }, hidden: ["status"] },
  "traffic.listTrafficValues": { positional: ["field"] },
  "traffic.getTrafficBody": { name: "body", hidden: ["download"] },
  "traffic.importHar": {
    flags: { session_name: "-n, --session-name <name>", switch_session: "--switch" },
    hidden: ["task_id"],
  },
  "sessions.createSession": { flags: { name: "-n, --name <name>", description: "-d, --description <text>" } },
  "sessions.importSession": {
    flags: { session_name: "-n, --session-name <name>", switch_session: "--switch" },
    hidden: ["task_id"],
  },
  "sessions.exportSession": { flags: { format: "-f, --format <format>" } },
  "export.exportHar": { flags: FILTER_FLAGS, hidden: ["status"] },
  "export.exportCurl": { prints: "curl" },
  "export.exportSnippet": { flags: { format: "-f, --format <format>" }, prints: "text" },
  "streams.assembleStream": { name: "assembled" },
  "cert.getMobileConfig": { name: "mobileconfig" },
  "cert.testInterception": { name: "test" },
  "config.updateConfig": {
    hidden: ["socks_auth_enabled", "access_control_enabled", "shown_host", "upstream_proxy.auth_enabled"],
  },
  "grpc.listGrpcConnections": { name: "connections", flags: { limit: "-l, --limit <count>" } },
  "grpc.listGrpcStreams": { name: "streams", flags: GRPC_FLAGS },
  "grpc.getGrpcStream": { name: "call" },
  "grpc.listGrpcFrames": { name: "frames", flags: GRPC_FLAGS },
  "autosave.updateAutosave": { hidden: AUTOSAVE_SHOWN },
  "autosave.saveSnapshot": { name: "snapshot" },
  "logs.getLogs": { name: "status" },
  "logs.updateLogs": { name: "config", hidden: LOGS_SHOWN },
  "logs.tailLogs": { name: "lines" },
  "mirror.getMirror": { name: "status" },
  "mirror.toggleMirror": {
    shortcuts: [
      { name: "start", summary: "Write response bodies to files", body: { enabled: true } },
      { name: "stop", summary: "Stop writing files", body: { enabled: false } },
    ],
  },
  "mirror.updateMirror": { name: "config", hidden: MIRROR_SHOWN },
  "capture.getCapture": { name: "status" },
  "capture.toggleCapture": {
    shortcuts: [
      { name: "enable", summary: "Record traffic", body: { enabled: true } },
      { name: "disable", summary: "Pass traffic through without recording it", body: { enabled: false } },
    ],
  },
  "mocks.createMocksFromTraffic": { name: "from-traffic" },
  "mocks.importMockDocument": { name: "import", flags: { format: "-f, --format <format>" }, hidden: ["task_id"] },
  "mocks.createMock": { flags: { body: "--text <text>" }, hidden: MOCK_OBJECTS },
  "mocks.createAdvancedMock": { flags: { body: "--text <text>" }, hidden: MOCK_OBJECTS },
  "mocks.updateMock": {
    flags: { body: "--text <text>" },
    hidden: [...MOCK_OBJECTS, "id", "created_at", "updated_at", "hit_count", "expired", "version", "version_history"],
  },
  "mocks.updateMockCollection": { hidden: ["id", "created_at", "updated_at", "rule_count"] },
  "mocks.previewMock": { hidden: SAMPLE_TOLERATED },
  "mocks.testMock": { hidden: SAMPLE_TOLERATED },
  "persistence.exportRules": { prints: "data" },
  "replay.listSavedRequests": { name: "list" },
  "replay.saveRequest": {
    name: "create",
    flags: { name: "-n, --name <name>", "request.body": "--request-text <text>" },
    hidden: ["traffic_id", "request.host", "request.path", "request.body_encoding", "request.content_type"],
    shortcuts: [{ name: "save", summary: "Save the request of an entry", positional: ["entry_id"] }],
  },
  "replay.saveFromTraffic": { name: "save-many" },
  "replay.listReplayCollections": { name: "collections" },
  "replay.getSavedRequest": { name: "show" },
  "replay.updateSavedRequest": {
    name: "update",
    flags: { name: "-n, --name <name>", "request.body": "--request-text <text>" },
    hidden: ["request.host", "request.path", "request.body_encoding", "request.content_type"],
  },
  "replay.deleteSavedRequest": { name: "delete" },
  "replay.getBatch": { name: "batch-result" },
  "replay.cancelBatch": { name: "batch-cancel" },
  "replay.listReplayHistory": { name: "history" },
  "replay.getReplay": { name: "result" },
  "replay.clearReplayHistory": { name: "history-clear" },
  "focus.addFocusHost": { positional: ["pattern"] },
  "breakpoints.listPausedItems": { name: "paused" },
  "breakpoints.resumePausedItem": { name: "resume", hidden: ["response"] },
  "breakpoints.holdPausedItem": { name: "hold" },
  "breakpoints.getPauseAll": { name: "pause-all-status" },
  "rewrites.toggleRewrites": { name: "batch-toggle" },
  "scripts.createScript": { flags: SCRIPT_FLAGS, files: SCRIPT_FILE },
  "scripts.updateScript": { flags: SCRIPT_FLAGS, files: SCRIPT_FILE, hidden: ["modified_at", "problem"] },
  "scripts.testScript": {
    flags: {
      source: "-i, --inline <source>",
      hook: "-H, --hook <hook>",
      entry_id: "-e, --entry-id <id>",
      "request.method": "-m, --method <method>",
      "request.url": "--url <url>",
      "request.body": "--request-text <text>",
      "response.status_code": "-s, --status <code>",
      "response.body": "--response-text <text>",
    },
    files: SCRIPT_FILE,
    hidden: ["response.status_message"],
    failure: "error",
  },
  "scripts.reorderScript": { flags: { priority: "-p, --priority <number>" } },
  "scripts.updateScriptConfig": {
    name: "config-update",
    hidden: ["max_memory_bytes", "enable_console", "allow_network", "allow_fs"],
  },
  "scripts.listScriptHistory": { name: "history-all", flags: LIMIT_FLAG, defaults: { limit: 20 } },
  "scripts.getScriptHistory": { name: "history", flags: LIMIT_FLAG, defaults: { limit: 20 } },
  "scripts.clearScriptHistory": { name: "history-clear" },
  "scripts.getScriptTraces": { group: "traffic", name: "script-traces" },
  "scripts.previewScriptMatches": { name: "match-preview", flags: { method: "-m, --method <method>" } },
  "persistence.saveRules": { headers: { "x-weir-confirm": "true" } },
  "metrics.getDetailedHealth": { name: "health" },
  "metrics.getPrometheusMetrics": { name: "prometheus" },
};

/** The subcommand of an operation: its name without the words of its slice, and without `get` or `list` where more is left. */
export function commandName(slice: string, operationName: string): string {
  const given = COMMAND_SHAPES[`${slice}.${operationName}`]?.name;
  if (given !== undefined) return given;
  const words = operationName.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).split(" ");
  const nouns = NOUNS[slice] ?? [slice];
  const telling = words.filter((word) => !nouns.includes(word));
  const [first, ...rest] = telling;
  return ((first === "get" || first === "list") && rest.length > 0 ? rest : telling).join("-");
}
