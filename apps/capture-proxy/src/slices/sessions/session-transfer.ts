// Tested by sessions.slice.test.ts
import { randomUUID } from "node:crypto";
import type { sessionsOperations } from "@headworks/capture-contract";
import type { HandlerInput, HandlerResult } from "@headworks/contract-kit";
import { ApiError, notFound } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";

type Operations = typeof sessionsOperations;

/** Streams a session as a native document or as HAR, oldest entry first. */
export async function answerSessionExport(
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
export async function answerSessionImport(
  { store, events }: Pick<SliceHost, "store" | "events">,
  { query, body, headers, signal }: HandlerInput<Operations["importSession"]>,
): Promise<HandlerResult<Operations["importSession"]>> {
  const length = Number(headers["content-length"]);
  const progress = {
    id: query.task_id ?? randomUUID(),
    kind: "import-session" as const,
    bytes: 0,
    total_bytes: Number.isSafeInteger(length) ? length : null,
    entries: 0,
    done: false,
    error: null as string | null,
  };
  try {
    const result = await store.importSession(body, {
      sessionName: query.session_name,
      switchSession: query.switch_session === "true",
      signal,
      onProgress: ({ bytes, entries }) => {
        Object.assign(progress, { bytes, entries });
        events.task({ ...progress });
      },
    });
    events.task({ ...progress, done: true, entries: result.imported_count });
    events.changed("sessions");
    const session = await store.getSession(result.session_id);
    return { status: 200, body: session ?? notFound("session", result.session_id) };
  } catch (error) {
    const known = error instanceof Error ? error : new Error(String(error));
    events.task({ ...progress, done: true, error: known.message });
    if (known.name === "ImportRefusedError") throw new ApiError("BAD_REQUEST", known.message, { cause: error });
    if (known.name === "AbortError") throw new ApiError("CANCELLED", undefined, { cause: error });
    throw error;
  }
}
