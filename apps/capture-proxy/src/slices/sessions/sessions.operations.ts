import type { sessionsOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ApiError, notFound } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import { handleSessionExport, handleSessionImport } from "./session-transfer.ts";

/** Handlers of the sessions' operations. */
export function createSessionsOperations(
  host: Pick<SliceHost, "store" | "events">,
): Handlers<typeof sessionsOperations> {
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
      // Deleting what is not there is a success: that is how the reference answers, and a retry must not fail.
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
