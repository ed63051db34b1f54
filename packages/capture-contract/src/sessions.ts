import { defineOperations, media, nullable, oneOf, strictObject, Type, upload } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { booleanText, COUNTED, Id, IdParams, IMPORT_LOSS, named, Timestamp } from "./primitives.ts";

/** A capture session: a named set of entries. */
export const CaptureSession = strictObject(
  {
    id: Id,
    name: nullable(Type.String()),
    created_at: Timestamp,
    updated_at: Timestamp,
    request_count: Type.Integer(),
    total_size_bytes: Type.Integer({ description: "Stored bodies" }),
    is_current: Type.Boolean(),
    notes: nullable(Type.String()),
    tags: Type.Array(Type.String()),
  },
  { $id: "CaptureSession" },
);
export type CaptureSession = Static<typeof CaptureSession>;

/** A session that was restored from a file. */
export const RestoredSession = strictObject(
  {
    ...CaptureSession.properties,
    skipped_count: Type.Integer({ description: "Parts of the document that were skipped; `errors` names them" }),
    ...IMPORT_LOSS,
    errors: Type.Array(Type.String(), {
      description:
        "What was cut or dropped because of a limit: at most 100 sentences, those about entries as `entry N: …`",
    }),
  },
  { $id: "RestoredSession" },
);
export type RestoredSession = Static<typeof RestoredSession>;

export const sessionsOperations = defineOperations({
  listSessions: {
    method: "GET",
    path: "/sessions",
    summary: "List capture sessions, latest updated first",
    access: "sessions:read",
    responseFields: COUNTED,
    responses: { 200: Type.Array(CaptureSession) },
    expose: { mcp: { name: "list_sessions", readOnly: true } },
  },
  createSession: {
    method: "POST",
    path: "/sessions",
    summary: "Create a session (without making it active)",
    access: "sessions:write",
    body: strictObject({
      name: Type.Optional(named("Name of the session")),
      description: Type.Optional(Type.String({ maxLength: 65536, description: "Its notes" })),
    }),
    bodyOptional: true,
    responses: { 200: CaptureSession },
  },
  importSession: {
    method: "POST",
    path: "/sessions/import",
    summary: "Restore a native session export",
    description:
      "Streamed: a file of any size may be sent. Exports of this service are restored completely. Bodies above 4 MiB in files of other programs are cut at `max_body_size`, like captured ones, and named in `errors`.",
    access: "sessions:write",
    query: strictObject({
      session_name: Type.Optional(named("Name of the new session")),
      switch_session: Type.Optional(booleanText("Make it the active session")),
      task_id: Type.Optional(Type.String({ maxLength: 64 })),
    }),
    body: upload(["application/json", "application/octet-stream"], "A file from `export?format=session`"),
    responses: { 200: RestoredSession },
  },
  getSession: {
    method: "GET",
    path: "/sessions/{id}",
    summary: "One session",
    access: "sessions:read",
    params: IdParams,
    responses: { 200: CaptureSession },
  },
  updateSession: {
    method: "PATCH",
    path: "/sessions/{id}",
    summary: "Rename a session, set its notes or tags",
    access: "sessions:write",
    params: IdParams,
    body: strictObject({
      name: Type.Optional(named("Its new name")),
      notes: Type.Optional(nullable(Type.String({ maxLength: 65536 }), { description: "Its notes" })),
      tags: Type.Optional(Type.Array(named("One tag"), { maxItems: 64, description: "All of its tags" })),
    }),
    responses: { 200: CaptureSession },
  },
  deleteSession: {
    method: "DELETE",
    path: "/sessions/{id}",
    summary: "Delete a session and its entries; the active session cannot be deleted",
    access: "sessions:delete",
    params: IdParams,
    responses: { 204: null },
  },
  exportSession: {
    method: "GET",
    path: "/sessions/{id}/export",
    summary: "Export a session as HAR or in the native, lossless format",
    access: "sessions:read",
    responseFields: COUNTED,
    params: IdParams,
    query: strictObject({
      format: Type.Optional(
        oneOf(["har", "session"], { default: "session", description: "HAR 1.2, or the lossless format" }),
      ),
    }),
    responses: { 200: media("application/json", "HAR 1.2, or the native session document") },
  },
  switchSession: {
    method: "POST",
    path: "/sessions/{id}/switch",
    summary: "Make a session the active one",
    description: "`max_requests` applies to the active session: the oldest entries beyond it are dropped.",
    access: "sessions:write",
    params: IdParams,
    responses: {
      200: strictObject({ success: Type.Literal(true), dropped_count: IMPORT_LOSS.dropped_count }),
    },
  },
});
