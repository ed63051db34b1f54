import { defineOperations, nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Id, OverriddenSettings, Timestamp } from "./primitives.ts";

const FORMATS = ["har", "session"] as const;
const seconds = { minimum: 1, maximum: 604_800 };
const backups = { minimum: 1, maximum: 100_000 };
const requests = { minimum: 0, maximum: 1_000_000_000 };
const minutes = { minimum: 0, maximum: 5_256_000 };
const outputDirectory = Type.String({ maxLength: 4096 });

/** Settings of auto-save. */
export const AutoSaveSettings = strictObject({
  enabled: Type.Boolean({
    default: false,
    "x-applies": "restart",
    description: "Save the active session to a file at regular intervals",
  }),
  interval_seconds: Type.Integer({
    ...seconds,
    default: 300,
    "x-applies": "restart",
    description: "Seconds between snapshots",
  }),
  export_format: oneOf([...FORMATS], {
    default: "har",
    "x-applies": "next-cycle",
    description: "HAR 1.2, or the native, lossless format",
  }),
  output_dir: nullable(outputDirectory, {
    default: null,
    "x-applies": "next-cycle",
    description: "Absolute directory of the snapshots. Default: `<data_dir>/backups`",
  }),
  max_backups: Type.Integer({
    ...backups,
    default: 10,
    "x-applies": "next-cycle",
    description: "Number of snapshots to keep; older ones are deleted",
  }),
  rotate_after_requests: nullable(Type.Integer(requests), {
    default: null,
    "x-applies": "next-cycle",
    description: "Number of entries after which a new session begins. Unset or 0 = never",
  }),
  rotate_after_minutes: nullable(Type.Integer(minutes), {
    default: null,
    "x-applies": "next-cycle",
    description: "Age at which a new session begins, in minutes. Unset or 0 = never",
  }),
});

/** Results of snapshots since the start. Times are null before the first one. */
const outcome = {
  running: Type.Boolean({
    description: "Whether automatic snapshots are active: `enabled` at the start of the service",
  }),
  restart_pending: Type.Boolean({
    description: "A change of `enabled` or `interval_seconds` takes effect after a restart",
  }),
  overridden_by: OverriddenSettings,
  saving: Type.Boolean({ description: "A snapshot is being written" }),
  next_snapshot: nullable(Timestamp),
  last_snapshot: nullable(Timestamp),
  last_snapshot_path: nullable(Type.String()),
  last_snapshot_bytes: nullable(Type.Integer()),
  last_snapshot_entries: nullable(Type.Integer()),
  last_error: nullable(
    Type.String({
      description:
        "Why the latest snapshot failed, or why a session that ended could not be saved; null if neither applies",
    }),
  ),
  last_error_at: nullable(Timestamp),
  snapshots_written: Type.Integer(),
  snapshots_failed: Type.Integer(),
  last_rotation: nullable(Timestamp, { description: "When a new session last began" }),
  cycles_missed: Type.Integer({ description: "Snapshots skipped because the previous one was still being written" }),
};

/** The settings as configured, and how it goes. */
export const AutoSaveStatus = strictObject(
  {
    enabled: Type.Boolean(),
    interval_seconds: Type.Integer(),
    export_format: oneOf([...FORMATS]),
    output_dir: Type.String(),
    max_backups: Type.Integer(),
    rotate_after_requests: nullable(Type.Integer()),
    rotate_after_minutes: nullable(Type.Integer()),
    ...outcome,
  },
  { $id: "AutoSaveStatus" },
);
export type AutoSaveStatus = Static<typeof AutoSaveStatus>;

const tolerated = Object.fromEntries(
  Object.entries(outcome).map(([name, schema]) => [name, Type.Optional(schema)]),
) as unknown as { [K in keyof typeof outcome]: ReturnType<typeof Type.Optional<(typeof outcome)[K]>> };

/** Changed settings; what is left out stays. What `GET /autosave` shows may be sent back. */
export const AutoSaveChange = strictObject({
  enabled: Type.Optional(Type.Boolean({ description: "Save at regular intervals; takes effect after a restart" })),
  interval_seconds: Type.Optional(
    Type.Integer({ ...seconds, description: "Seconds between snapshots; takes effect after a restart" }),
  ),
  export_format: Type.Optional(oneOf([...FORMATS], { description: "HAR 1.2, or the native, lossless format" })),
  output_dir: Type.Optional(
    nullable(outputDirectory, { description: "Absolute directory. Null or empty: `<data_dir>/backups`" }),
  ),
  max_backups: Type.Optional(Type.Integer({ ...backups, description: "Number of snapshots to keep" })),
  rotate_after_requests: Type.Optional(
    nullable(Type.Integer(requests), {
      description: "Number of entries after which a new session begins. Null or 0: never",
    }),
  ),
  rotate_after_minutes: Type.Optional(
    nullable(Type.Integer(minutes), { description: "Age at which a new session begins, in minutes. Null or 0: never" }),
  ),
  ...tolerated,
});
export type AutoSaveChange = Static<typeof AutoSaveChange>;

/** One snapshot that was made. */
export const SnapshotResult = strictObject(
  {
    success: Type.Boolean(),
    message: Type.String(),
    output_dir: Type.String(),
    path: Type.String({ description: "The file" }),
    size_bytes: Type.Integer(),
    entries: Type.Integer(),
    session_id: Id,
    pruned: Type.Array(Type.String(), { description: "Files that were deleted, oldest first" }),
  },
  { $id: "SnapshotResult" },
);
export type SnapshotResult = Static<typeof SnapshotResult>;

export const autosaveOperations = defineOperations({
  getAutosave: {
    method: "GET",
    path: "/autosave",
    summary: "Settings and state of auto-save",
    access: "config:read",
    responses: { 200: AutoSaveStatus },
    expose: { mcp: { name: "get_autosave_config", readOnly: true } },
  },
  updateAutosave: {
    method: "PATCH",
    path: "/autosave",
    summary: "Change the settings of auto-save; omitted settings are unchanged",
    description:
      "`enabled` and `interval_seconds` take effect at the next start, everything else with the next snapshot. Flags and environment variables take precedence at each start; `overridden_by` names such settings.",
    access: "config:write",
    body: AutoSaveChange,
    responses: { 200: AutoSaveStatus },
    expose: { mcp: { name: "update_autosave_config", readOnly: false } },
  },
  saveSnapshot: {
    method: "POST",
    path: "/autosave/snapshot",
    summary: "Save the active session to a file now",
    description:
      "Waits for a snapshot that is being written. The file is complete and on disk when the response is sent. Only automatic snapshots begin new sessions.",
    access: "config:write",
    body: strictObject({}),
    bodyOptional: true,
    responses: { 200: SnapshotResult },
    expose: { mcp: { name: "trigger_autosave_snapshot", readOnly: false } },
  },
});
