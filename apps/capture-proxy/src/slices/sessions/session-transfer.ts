import type { sessionsOperations } from "@headworks/capture-contract";
import type { HandlerInput, HandlerResult } from "@headworks/contract-kit";
import { notFound } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";

type Operations = typeof sessionsOperations;

/** Streams a session as a native document or as HAR, oldest entry first. */
export async function handleSessionExport(
  { store }: Pick<SliceHost, "store">,
  { params, query, signal }: HandlerInput<Operations["exportSession"]>,
): Promise<HandlerResult<Operations["exportSession"]>> {
  const isHar = query.format === "har";
  const exists = (await store.getSession(params.id)) !== undefined;
  const document = !exists
    ? undefined
    : isHar
      ? await store.exportHar({ session_id: params.id }, undefined, signal)
      : await store.exportSession(params.id, signal);
  if (document === undefined) return notFound("session", params.id);
  const fileName = `${params.id.replaceAll(/[^\w-]/gu, "_")}.${isHar ? "har" : "json"}`;
  const headers = {
    "content-type": "application/json",
    "x-total-count": String(document.total),
    "content-disposition": `attachment; filename="${fileName}"`,
  };
  return { status: 200, headers, body: document.chunks };
}

/** Restores a native document into a session of its own. A bad document is refused and leaves nothing behind. */
export async function handleSessionImport(
  { store, events }: Pick<SliceHost, "store" | "events">,
  { query, body, headers, signal }: HandlerInput<Operations["importSession"]>,
): Promise<HandlerResult<Operations["importSession"]>> {
  const { session_name: sessionName, switch_session: switchSession, task_id: id } = query;
  const {
    session_id: sessionId,
    imported_count: _imported,
    ...rest
  } = await events.task(
    { id, kind: "import-session", contentLength: headers["content-length"] },
    async (onProgress) =>
      await store.importSession(body, { sessionName, switchSession: switchSession === "true", signal, onProgress }),
  );
  events.changed("sessions");
  const session = (await store.getSession(sessionId)) ?? notFound("session", sessionId);
  return { status: 200, body: { ...session, ...rest } };
}
