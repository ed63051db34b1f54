import { defineOperations, nullable, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Timestamp, ToggleBody } from "./primitives.ts";

const outputDirectory = Type.String({ maxLength: 4096 });
const hostFilter = Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { maxItems: 10_000 });

/** Settings of the mirror. */
export const MirrorSettings = strictObject({
  enabled: Type.Boolean({
    default: false,
    "x-applies": "now",
    description: "Write response bodies to files",
  }),
  output_dir: nullable(outputDirectory, {
    default: null,
    "x-applies": "now",
    description: "Absolute directory of the mirrored files. Default: `<data_dir>/mirror`",
  }),
  host_filter: nullable(hostFilter, {
    default: null,
    "x-applies": "now",
    description: "Hosts that are mirrored: names, `*.domain`, globs. Default: all hosts",
  }),
  save_request_bodies: Type.Boolean({
    default: false,
    "x-applies": "now",
    description: "Also write request bodies, as `<file>.request`",
  }),
});

/** The mirror's settings and what it did since the start. */
export const MirrorStatus = strictObject(
  {
    enabled: Type.Boolean(),
    output_dir: Type.String(),
    host_filter: nullable(Type.Array(Type.String())),
    save_request_bodies: Type.Boolean(),
    files_written: Type.Integer({ description: "Number of bodies written since the start, without sidecars" }),
    bytes_written: Type.Integer({ description: "Their bytes" }),
    files_dropped: Type.Integer({
      description: "Files that were not written because the queue was full or the disk refused them",
    }),
    queued_files: Type.Integer({ description: "Exchanges queued for writing" }),
    queued_bytes: Type.Integer({ description: "Bytes of memory used by their bodies" }),
    last_error: nullable(Type.String({ description: "Why the latest dropped file was not written" })),
    last_error_at: nullable(Timestamp),
    writing: Type.Boolean({ description: "False if the latest write failed" }),
  },
  { $id: "MirrorStatus" },
);
export type MirrorStatus = Static<typeof MirrorStatus>;

/** Changed settings; what is left out stays. What `GET /mirror` shows may be sent back. */
export const MirrorChange = strictObject({
  enabled: Type.Optional(Type.Boolean({ description: "Write response bodies to files" })),
  output_dir: Type.Optional(
    nullable(outputDirectory, { description: "Absolute directory. Null or empty: `<data_dir>/mirror`" }),
  ),
  host_filter: Type.Optional(
    nullable(hostFilter, { description: "Hosts that are mirrored. Null or empty: all hosts" }),
  ),
  save_request_bodies: Type.Optional(Type.Boolean({ description: "Also write request bodies" })),
  files_written: Type.Optional(Type.Integer()),
  bytes_written: Type.Optional(Type.Integer()),
  files_dropped: Type.Optional(Type.Integer()),
  queued_files: Type.Optional(Type.Integer()),
  queued_bytes: Type.Optional(Type.Integer()),
  last_error: Type.Optional(nullable(Type.String())),
  last_error_at: Type.Optional(nullable(Timestamp)),
  writing: Type.Optional(Type.Boolean()),
});
export type MirrorChange = Static<typeof MirrorChange>;

export const mirrorOperations = defineOperations({
  getMirror: {
    method: "GET",
    path: "/mirror",
    summary: "Settings, state and counts of the mirror",
    access: "config:read",
    responses: { 200: MirrorStatus },
    expose: { mcp: { name: "get_mirror_status", readOnly: true } },
  },
  toggleMirror: {
    method: "POST",
    path: "/mirror/toggle",
    summary: "Switch the mirror on or off",
    access: "config:write",
    body: ToggleBody,
    bodyOptional: true,
    responses: { 200: strictObject({ enabled: Type.Boolean(), message: Type.String() }) },
    expose: { mcp: { name: "toggle_mirror", readOnly: false } },
  },
  updateMirror: {
    method: "PATCH",
    path: "/mirror/config",
    summary: "Change the mirror's settings; they take effect at once",
    access: "config:write",
    body: MirrorChange,
    responses: { 200: MirrorStatus },
    expose: { mcp: { name: "update_mirror_config", readOnly: false } },
  },
});
