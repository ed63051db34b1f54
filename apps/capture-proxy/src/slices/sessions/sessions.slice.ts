import type { sessionsOperations } from "@headworks/capture-contract";
import type { HandlerInput, HandlerResult, Handlers } from "@headworks/contract-kit";
import { ApiError, notFound } from "#api/api-error.ts";
import type { Slice, SliceHost } from "#slice.ts";

/** Capture sessions: named sets of entries; captured traffic goes into the active one. */
export function createSessionsSlice(host: SliceHost): Slice<typeof sessionsOperations> {
  return { name: "sessions", operations: createSessionsOperations(host) };
}

function createSessionsOperations(host: Pick<SliceHost, "store" | "events">): Handlers<typeof sessionsOperations> {
  const { store, events } = host;
  return {
    listSessions: async () => ({ status: 200, body: await store.listSessions() }),
    createSession: async ({ body }) => {
      const session = await store.createSession(body?.name ?? null, body?.description ?? null);
      events.changed("sessions");
      return { status: 200, body: session };
    },
    importSession: async (input) => await handleSessionImport(host, input),
    getSession: async ({ params }) => ({
      status: 200,
      body: (await store.getSession(params.id)) ?? notFound("session", params.id),
    }),
    updateSession: async ({ params, body }) => {
      const session = (await store.updateSession(params.id, body)) ?? notFound("session", params.id);
      events.changed("sessions");
      return { status: 200, body: session };
    },
    deleteSession: async ({ params }) => {
      const outcome = await store.deleteSession(params.id);
      if (outcome === "active") {
        throw new ApiError("CONFLICT", "The active session cannot be deleted: switch to another one first");
      }
      // Idempotent: deleting an unknown session succeeds, so that a retry does not fail.
      if (outcome === "deleted") events.changed("sessions");
      return { status: 204 };
    },
    exportSession: async (input) => await handleSessionExport(host, input),
    switchSession: async ({ params }) => {
      const droppedCount = (await store.switchSession(params.id)) ?? notFound("session", params.id);
      events.changed("sessions");
      return { status: 200, body: { success: true, ...(droppedCount > 0 && { dropped_count: droppedCount }) } };
    },
  };
}

type Operations = typeof sessionsOperations;

/** Streams a session as a native document or HAR, oldest entry first. */
async function handleSessionExport(
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

/** Imports a native document into a new session. A bad document is rejected and leaves nothing behind. */
async function handleSessionImport(
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
