import { defineOperations, nullable, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Timestamp, ToggleBody } from "./primitives.ts";

const outputDirectory = Type.String({ maxLength: 4096 });
const hostFilter = Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { maxItems: 10_000 });

/** What the mirror keeps in the configuration. */
export const MirrorSettings = strictObject({
  enabled: Type.Boolean({
    default: false,
    "x-applies": "now",
    description: "Write the bodies of answers to files",
  }),
  output_dir: nullable(outputDirectory, {
    default: null,
    "x-applies": "now",
    description: "Absolute directory of the mirrored files; without one it is `<data_dir>/mirror`",
  }),
  host_filter: nullable(hostFilter, {
    default: null,
    "x-applies": "now",
    description: "Hosts that are mirrored: names, `*.domain`, globs; without any, all of them",
  }),
  save_request_bodies: Type.Boolean({
    default: false,
    "x-applies": "now",
    description: "Write the bodies of requests too, as `<file>.request`",
  }),
});

/** The mirror's settings and what it did since the start. */
export const MirrorStatus = strictObject(
  {
    enabled: Type.Boolean(),
    output_dir: Type.String(),
    host_filter: nullable(Type.Array(Type.String())),
    save_request_bodies: Type.Boolean(),
    files_written: Type.Integer({ description: "Files with bodies, since the start; sidecars are not counted" }),
    bytes_written: Type.Integer({ description: "Their bytes" }),
    files_dropped: Type.Integer({
      description: "Files that were not written: the queue was full, or the disk refused",
    }),
    queued_files: Type.Integer({ description: "Exchanges that wait to be written" }),
    queued_bytes: Type.Integer({ description: "Memory their bodies take" }),
    last_error: nullable(Type.String({ description: "Why the newest dropped file was not written" })),
    last_error_at: nullable(Timestamp),
    writing: Type.Boolean({ description: "False while the newest write failed" }),
  },
  { $id: "MirrorStatus" },
);
export type MirrorStatus = Static<typeof MirrorStatus>;

/** Changed settings; what is left out stays. What `GET /mirror` shows may be sent back. */
export const MirrorChange = strictObject({
  enabled: Type.Optional(Type.Boolean({ description: "Write the bodies of answers to files" })),
  output_dir: Type.Optional(
    nullable(outputDirectory, { description: "Absolute directory; null or an empty text is `<data_dir>/mirror`" }),
  ),
  host_filter: Type.Optional(
    nullable(hostFilter, { description: "Hosts that are mirrored; null or an empty list is all of them" }),
  ),
  save_request_bodies: Type.Optional(Type.Boolean({ description: "Write the bodies of requests too" })),
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
    summary: "Whether answers are written to files, where, and how many were",
    access: "config:read",
    responses: { 200: MirrorStatus },
    expose: { mcp: { name: "get_mirror_status", readOnly: true } },
  },
  toggleMirror: {
    method: "POST",
    path: "/mirror/toggle",
    summary: "Switch the mirror on or off; without a body it flips",
    access: "config:write",
    body: ToggleBody,
    bodyOptional: true,
    responses: { 200: strictObject({ enabled: Type.Boolean(), message: Type.String() }) },
    expose: { mcp: { name: "toggle_mirror", readOnly: false } },
  },
  updateMirror: {
    method: "PATCH",
    path: "/mirror/config",
    summary: "Change the mirror's settings; they hold at once and are persisted",
    access: "config:write",
    body: MirrorChange,
    responses: { 200: MirrorStatus },
    expose: { mcp: { name: "update_mirror_config", readOnly: false } },
  },
});
