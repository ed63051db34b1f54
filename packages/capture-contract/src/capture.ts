import { defineOperations, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { ToggleBody } from "./primitives.ts";

export const CaptureStatus = strictObject(
  { capture_enabled: Type.Boolean(), mode: oneOf(["recording", "passthrough"]) },
  { $id: "CaptureStatus" },
);
export type CaptureStatus = Static<typeof CaptureStatus>;

export const CaptureStats = strictObject(
  {
    entry_count: Type.Integer(),
    max_entries: Type.Integer({ description: "0 = no limit" }),
    total_size_bytes: Type.Integer({ description: "Stored bodies of the active session" }),
    max_total_size_bytes: Type.Integer({ description: "0 = no limit" }),
    max_body_size: Type.Integer(),
    capture_enabled: Type.Boolean(),
    capture_request_bodies: Type.Boolean(),
    capture_response_bodies: Type.Boolean(),
    ignored_domains: Type.Array(Type.String()),
    store_size_bytes: Type.Integer({ description: "Database and body files on disk" }),
    bodies_not_stored: Type.Integer({
      description:
        "Bodies not stored since the start: storage fell behind, the disk refused them, or they exceed `max_total_size_mb`",
    }),
    entries_removed: Type.Integer({
      description:
        "Oldest entries deleted since the start to make room, because of `max_requests` or `max_total_size_mb`",
    }),
    entries_lost: Type.Integer({ description: "Entries that could not be stored since the start (full disk)" }),
    storage_ok: Type.Boolean(),
    storage_problem: Type.Union([Type.String(), Type.Null()]),
  },
  { $id: "CaptureStats" },
);
export type CaptureStats = Static<typeof CaptureStats>;

export const captureOperations = defineOperations({
  getCapture: {
    method: "GET",
    path: "/capture",
    summary: "Capture status: recording or passthrough",
    access: "config:read",
    responses: { 200: CaptureStatus },
  },
  toggleCapture: {
    method: "POST",
    path: "/capture/toggle",
    summary: "Switch recording on or off",
    access: "config:write",
    body: ToggleBody,
    bodyOptional: true,
    responses: { 200: CaptureStatus },
  },
  getCaptureStats: {
    method: "GET",
    path: "/capture/stats",
    summary: "What is stored, and its limits",
    access: "config:read",
    responses: { 200: CaptureStats },
  },
});
