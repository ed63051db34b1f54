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

/** When the log file is rotated by itself. */
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
    description: "Write the log to a file; off, it goes to standard output alone",
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
    description: "Rotated log files that are kept",
  }),
  max_file_size_mb: Type.Integer({
    ...maxFileSizeMb,
    default: 100,
    "x-applies": "now",
    description: "MiB that a log file may have, whatever the rotation",
  }),
  json_format: Type.Boolean({ default: false, "x-applies": "restart", description: "Write the log as JSON lines" }),
  async_writing: Type.Boolean({
    default: true,
    "x-applies": "now",
    description: "Write the log file behind traffic's back; off, each line is written before work goes on",
  }),
  async_mode: oneOf([...ASYNC_MODES], {
    default: "drop_newest",
    "x-applies": "now",
    description: "Which lines are left out, and counted, when more wait for the disk than may",
  }),
  async_buffer_size: Type.Integer({
    ...bufferSize,
    default: 16_384,
    "x-applies": "now",
    description: "Log lines that may wait for the disk",
  }),
});

/** Logging of traffic, as it is kept in the configuration. */
export const TrafficLogSettings = strictObject({
  enabled: Type.Boolean({ default: false, "x-applies": "now", description: "Log requests and answers" }),
  level: oneOf([...LEVELS], {
    default: "summary",
    "x-applies": "now",
    description: "One line each, with headers, or with bodies too",
  }),
  host_filter: Type.Unsafe<string[]>({
    ...hostFilter,
    default: [],
    "x-applies": "now",
    description: "Hosts whose traffic is logged: names, *.domain, globs; empty is all of them",
  }),
  redact_headers: Type.Unsafe<string[]>({
    ...headerNames,
    default: ["Authorization", "Cookie", "Set-Cookie"],
    "x-applies": "now",
    description: "Headers whose values are logged as [REDACTED]; Proxy-Authorization and X-API-Key always are",
  }),
  redact_bodies: Type.Boolean({ default: false, "x-applies": "now", description: "Log the size of bodies alone" }),
});

/** What the log is doing. */
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
    restart_pending: Type.Array(Type.String(), { description: "Settings that hold from the next start on" }),
    overridden_by: OverriddenSettings,
    async: strictObject({
      enabled: Type.Boolean(),
      mode: oneOf([...ASYNC_MODES]),
      buffer_size: Type.Integer(),
      buffer_depth: Type.Integer({ description: "Lines that wait for the disk now" }),
      high_water: Type.Integer({ description: "Most lines that ever waited" }),
      dropped_events: Type.Integer({ description: "Lines that are in no file" }),
      written_events: Type.Integer(),
    }),
    log_dir: Type.String(),
    current_file: nullable(strictObject({ path: Type.String(), size_bytes: Type.Integer() }), {
      description: "Null while no file is written",
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
    problem: nullable(Type.String(), { description: "Why the file cannot be written at the moment" }),
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
      dropped: Type.Integer({ description: "Messages that came faster than they could be logged" }),
      waiting: Type.Integer(),
    }),
  },
  { $id: "LogStatus" },
);
export type LogStatus = Static<typeof LogStatus>;

/** A rotation is the answer, and the name of the file that was put away. */
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
  enabled: Type.Optional(Type.Boolean({ description: "Write to a file; off, standard output alone" })),
  rotation: Type.Optional(
    Type.Union([oneOf([...MODES]), LogRotation], {
      description: "never, hourly, daily or size; from the next start on",
    }),
  ),
  size_mb: Type.Optional(sizeMb),
  max_files: Type.Optional(Type.Integer({ ...maxFiles, description: "Rotated files that are kept" })),
  max_file_size_mb: Type.Optional(Type.Integer({ ...maxFileSizeMb, description: "MiB that a file may have" })),
  json_format: Type.Optional(Type.Boolean({ description: "JSON lines instead of text, from the next start on" })),
  async_writing: Type.Optional(Type.Boolean({ description: "Write behind traffic's back" })),
  async_mode: Type.Optional(
    oneOf([...ASYNC_MODES], { description: "Which lines are left out when the disk is too slow" }),
  ),
  async_buffer_size: Type.Optional(Type.Integer({ ...bufferSize, description: "Lines that may wait for the disk" })),
  debug_logging: Type.Optional(
    strictObject({
      enabled: Type.Optional(Type.Boolean({ description: "Log requests and answers" })),
      level: Type.Optional(oneOf([...LEVELS], { description: "One line each, with headers, or with bodies too" })),
      host_filter: Type.Optional(nullable(hostFilter, { description: "Hosts that are logged; null or [] is all" })),
      redact_headers: Type.Optional(headerNames),
      redact_bodies: Type.Optional(Type.Boolean({ description: "Log the size of bodies alone" })),
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
    next_cursor: Type.String({ description: "Give it as `cursor` to get what was written since" }),
    missed: Type.Boolean({ description: "Lines between the cursor and the first line were left out or are gone" }),
  },
  { $id: "LogLines" },
);
export type LogLines = Static<typeof LogLines>;

export const logsOperations = defineOperations({
  getLogs: {
    method: "GET",
    path: "/logs",
    summary: "The log's settings, its files and how writing them goes",
    access: "config:read",
    responses: { 200: LogStatus },
    expose: { mcp: { name: "get_log_status", readOnly: true } },
  },
  updateLogs: {
    method: "PATCH",
    path: "/logs",
    summary: "Change the log's settings, all or nothing; persisted",
    description:
      "`rotation` and `json_format` hold from the next start on, everything else at once. The answer says in `restart_pending` what waits, and in `overridden_by` what a flag or the environment gives and wins at each start.",
    access: "config:write",
    body: LogChange,
    responses: { 200: strictObject({ ...status, message: Type.String() }, { $id: "LogsChanged" }) },
    expose: { mcp: { name: "update_log_config", readOnly: false } },
  },
  rotateLogs: {
    method: "POST",
    path: "/logs/rotate",
    summary: "Put the log file away now and begin a new one",
    access: "config:write",
    body: strictObject({}),
    bodyOptional: true,
    responses: { 200: LogRotated },
    expose: { mcp: { name: "rotate_logs", readOnly: false } },
  },
  tailLogs: {
    method: "GET",
    path: "/logs/lines",
    summary: "The last lines of the log file, or those written since",
    access: "config:read",
    query: strictObject({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: "Most lines; 100" })),
      cursor: Type.Optional(Type.String({ maxLength: 64, description: "`next_cursor` of an earlier answer" })),
    }),
    responses: { 200: LogLines },
  },
});
