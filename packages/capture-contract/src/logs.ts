import { defineOperations, nullable, oneOf, strictObject, taggedBy, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { OverriddenSettings, Timestamp } from "./primitives.ts";

const MODES = ["never", "hourly", "daily", "size"] as const;
const LEVELS = ["summary", "headers", "full"] as const;
const ASYNC_MODES = ["drop_newest", "drop_oldest"] as const;
const sizeMb = Type.Integer({ minimum: 1, maximum: 1_048_576, description: "MiB at which the file is rotated" });
const maxFiles = { minimum: 0, maximum: 100_000 };
const maxFileSizeMb = { minimum: 1, maximum: 1_048_576 };
const bufferSize = { minimum: 1, maximum: 1_000_000 };
const hostFilter = Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { maxItems: 10_000 });
const headerNames = Type.Array(
  Type.String({ minLength: 1, maxLength: 255, pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" }),
  {
    maxItems: 1000,
  },
);

/** Automatic rotation of the log file. */
export const LogRotation = taggedBy<LogRotation>("mode", [
  strictObject({ mode: oneOf(["never", "hourly", "daily"]) }),
  strictObject({ mode: oneOf(["size"]), size_mb: sizeMb }),
]);
export type LogRotation =
  | { readonly mode: "never" | "hourly" | "daily" }
  | { readonly mode: "size"; readonly size_mb: number };

/** The log file's settings, as they are kept in the configuration. */
export const LogSettings = strictObject({
  enabled: Type.Boolean({
    default: true,
    "x-applies": "now",
    description: "Write the log to a file; if off, only to standard output",
  }),
  rotation: Type.Unsafe<LogRotation>({
    ...LogRotation,
    default: { mode: "daily" },
    "x-applies": "restart",
    description: "When the log file is rotated: never, hourly, daily, or size:<MiB>",
  }),
  max_files: Type.Integer({
    ...maxFiles,
    default: 7,
    "x-applies": "now",
    description: "Number of rotated log files to keep",
  }),
  max_file_size_mb: Type.Integer({
    ...maxFileSizeMb,
    default: 100,
    "x-applies": "now",
    description: "Maximum size of a log file in MiB, whatever the rotation",
  }),
  json_format: Type.Boolean({ default: false, "x-applies": "restart", description: "Write the log as JSON lines" }),
  async_writing: Type.Boolean({
    default: true,
    "x-applies": "now",
    description: "Write the log file asynchronously; if off, each line is written before work continues",
  }),
  async_mode: oneOf([...ASYNC_MODES], {
    default: "drop_newest",
    "x-applies": "now",
    description: "Which lines are dropped (and counted) if the buffer is full",
  }),
  async_buffer_size: Type.Integer({
    ...bufferSize,
    default: 16_384,
    "x-applies": "now",
    description: "Number of log lines that are buffered for the disk",
  }),
});

/** Logging of traffic, as it is kept in the configuration. */
export const TrafficLogSettings = strictObject({
  enabled: Type.Boolean({ default: false, "x-applies": "now", description: "Log requests and responses" }),
  level: oneOf([...LEVELS], {
    default: "summary",
    "x-applies": "now",
    description: "One line for each message, with headers, or also with bodies",
  }),
  host_filter: Type.Unsafe<string[]>({
    ...hostFilter,
    default: [],
    "x-applies": "now",
    description: "Hosts whose traffic is logged: names, *.domain, globs. Empty = all hosts",
  }),
  redact_headers: Type.Unsafe<string[]>({
    ...headerNames,
    default: ["Authorization", "Cookie", "Set-Cookie"],
    "x-applies": "now",
    description: "Headers whose values are logged as [REDACTED], besides Proxy-Authorization and X-API-Key",
  }),
  redact_bodies: Type.Boolean({ default: false, "x-applies": "now", description: "Log only the size of bodies" }),
});

/** The state of the log. */
export const LogStatus = strictObject(
  {
    enabled: Type.Boolean(),
    rotation: LogRotation,
    rotation_label: Type.String({ description: "`never`, `hourly`, `daily` or `size (<n> MB)`" }),
    max_files: Type.Integer(),
    max_file_size_mb: Type.Integer(),
    json_format: Type.Boolean(),
    async_writing: Type.Boolean(),
    async_mode: oneOf([...ASYNC_MODES]),
    async_buffer_size: Type.Integer(),
    restart_pending: Type.Array(Type.String(), { description: "Changed settings that take effect at the next start" }),
    overridden_by: OverriddenSettings,
    async: strictObject({
      enabled: Type.Boolean(),
      mode: oneOf([...ASYNC_MODES]),
      buffer_size: Type.Integer(),
      buffer_depth: Type.Integer({ description: "Buffered lines now" }),
      high_water: Type.Integer({ description: "Maximum number of buffered lines so far" }),
      dropped_events: Type.Integer({ description: "Lines that were dropped" }),
      written_events: Type.Integer(),
    }),
    log_dir: Type.String(),
    current_file: nullable(strictObject({ path: Type.String(), size_bytes: Type.Integer() }), {
      description: "Null if no file is written",
    }),
    archived_files: Type.Array(
      strictObject({
        name: Type.String(),
        path: Type.String(),
        size_bytes: Type.Integer(),
        modified: Timestamp,
      }),
      { description: "Newest first" },
    ),
    archived_count: Type.Integer(),
    problem: nullable(Type.String(), { description: "Why the file cannot be written now" }),
    verbosity: Type.String({ description: "`error`, `warn`, `info`, `debug`, `trace` or `silent`" }),
    debug_logging: strictObject({
      enabled: Type.Boolean(),
      level: oneOf([...LEVELS]),
      host_filter: Type.Array(Type.String()),
      redact_headers: Type.Array(Type.String()),
      redact_bodies: Type.Boolean(),
    }),
    traffic_events: strictObject({
      logged: Type.Integer({ description: "Since the start" }),
      dropped: Type.Integer({ description: "Messages that arrived faster than they could be logged" }),
      waiting: Type.Integer(),
    }),
  },
  { $id: "LogStatus" },
);
export type LogStatus = Static<typeof LogStatus>;

/** The response to a rotation: the state of the log, and the name of the rotated file. */
export const LogRotated = strictObject(
  { ...LogStatus.properties, rotated_to: Type.String({ description: "Path of the archived file" }) },
  { $id: "LogRotated" },
);
export type LogRotated = Static<typeof LogRotated>;

const { properties: status } = LogStatus;
const { mode: _mode, ...asyncReadOnly } = status.async.properties;

/**
 * Changed settings; what is left out stays. `rotation` may also be a mode alone, with `size_mb` beside it. What
 * `GET /logs` shows may be sent back. One invalid field refuses the whole change.
 */
export const LogChange = strictObject({
  enabled: Type.Optional(Type.Boolean({ description: "Write to a file; if off, only to standard output" })),
  rotation: Type.Optional(
    Type.Union([oneOf([...MODES]), LogRotation], {
      description: "When the file is rotated; takes effect at the next start",
    }),
  ),
  size_mb: Type.Optional(sizeMb),
  max_files: Type.Optional(Type.Integer({ ...maxFiles, description: "Number of rotated files to keep" })),
  max_file_size_mb: Type.Optional(Type.Integer({ ...maxFileSizeMb, description: "Maximum size of a file in MiB" })),
  json_format: Type.Optional(
    Type.Boolean({ description: "Write JSON lines instead of text; takes effect at the next start" }),
  ),
  async_writing: Type.Optional(Type.Boolean({ description: "Write the log asynchronously" })),
  async_mode: Type.Optional(oneOf([...ASYNC_MODES], { description: "Which lines are dropped if the buffer is full" })),
  async_buffer_size: Type.Optional(
    Type.Integer({ ...bufferSize, description: "Number of lines that are buffered for the disk" }),
  ),
  debug_logging: Type.Optional(
    strictObject({
      enabled: Type.Optional(Type.Boolean({ description: "Log requests and responses" })),
      level: Type.Optional(
        oneOf([...LEVELS], { description: "One line for each message, with headers, or also with bodies" }),
      ),
      host_filter: Type.Optional(
        nullable(hostFilter, { description: "Hosts whose traffic is logged. Null or empty: all hosts" }),
      ),
      redact_headers: Type.Optional(headerNames),
      redact_bodies: Type.Optional(Type.Boolean({ description: "Log only the size of bodies" })),
    }),
  ),
  rotation_label: Type.Optional(Type.String()),
  restart_pending: Type.Optional(status.restart_pending),
  overridden_by: Type.Optional(status.overridden_by),
  async: Type.Optional(strictObject({ ...asyncReadOnly, mode: Type.String() })),
  log_dir: Type.Optional(Type.String()),
  current_file: Type.Optional(status.current_file),
  archived_files: Type.Optional(status.archived_files),
  archived_count: Type.Optional(Type.Integer()),
  problem: Type.Optional(status.problem),
  verbosity: Type.Optional(Type.String()),
  traffic_events: Type.Optional(status.traffic_events),
});
export type LogChange = Static<typeof LogChange>;

/** Lines of the log file, oldest first. */
export const LogLines = strictObject(
  {
    lines: Type.Array(Type.String()),
    next_cursor: Type.String({ description: "Pass it as `cursor` to get the lines written since" }),
    missed: Type.Boolean({ description: "Lines between the cursor and the first line are missing" }),
  },
  { $id: "LogLines" },
);
export type LogLines = Static<typeof LogLines>;

export const logsOperations = defineOperations({
  getLogs: {
    method: "GET",
    path: "/logs",
    summary: "Settings, files and state of the log",
    access: "config:read",
    responses: { 200: LogStatus },
    expose: { mcp: { name: "get_log_status", readOnly: true } },
  },
  updateLogs: {
    method: "PATCH",
    path: "/logs",
    summary: "Change the log's settings, all or nothing",
    description:
      "Persisted. `rotation` and `json_format` take effect at the next start, everything else at once. In the response, `restart_pending` names the settings that wait for a restart, and `overridden_by` those for which a flag or the environment takes precedence at each start.",
    access: "config:write",
    body: LogChange,
    responses: { 200: strictObject({ ...status, message: Type.String() }, { $id: "LogsChanged" }) },
    expose: { mcp: { name: "update_log_config", readOnly: false } },
  },
  rotateLogs: {
    method: "POST",
    path: "/logs/rotate",
    summary: "Rotate the log file now",
    access: "config:write",
    body: strictObject({}),
    bodyOptional: true,
    responses: { 200: LogRotated },
    expose: { mcp: { name: "rotate_logs", readOnly: false } },
  },
  tailLogs: {
    method: "GET",
    path: "/logs/lines",
    summary: "The last lines of the log file, or those after a cursor",
    access: "config:read",
    query: strictObject({
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 1000, description: "Maximum number of lines. Default: 100" }),
      ),
      cursor: Type.Optional(Type.String({ maxLength: 64, description: "`next_cursor` of an earlier response" })),
    }),
    responses: { 200: LogLines },
  },
});
