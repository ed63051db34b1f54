// Tested by traffic.slice.test.ts
import { randomUUID } from "node:crypto";
import type { trafficOperations } from "@headworks/capture-contract";
import type { HandlerInput, HandlerResult } from "@headworks/contract-kit";
import type { SliceHost } from "#slice.ts";
import { asked } from "./traffic.check.ts";

type ImportOperation = (typeof trafficOperations)["importHar"];

/** Imports a HAR and tells how far it is. A bad document is refused and leaves nothing behind. */
export async function answerHarImport(
  { store, events }: Pick<SliceHost, "store" | "events">,
  { query, body, headers, signal }: HandlerInput<ImportOperation>,
): Promise<HandlerResult<ImportOperation>> {
  const length = Number(headers["content-length"]);
  const progress = {
    id: query.task_id ?? randomUUID(),
    kind: "import-har" as const,
    bytes: 0,
    total_bytes: Number.isSafeInteger(length) ? length : null,
    entries: 0,
    done: false,
    error: null as string | null,
  };
  try {
    const result = await asked(
      store.importHar(body, {
        sessionName: query.session_name,
        switchSession: query.switch_session === "true",
        signal,
        onProgress: ({ bytes, entries }) => {
          Object.assign(progress, { bytes, entries });
          events.task({ ...progress });
        },
      }),
    );
    events.task({ ...progress, done: true, entries: result.imported_count });
    events.changed("sessions");
    return { status: 200, body: result };
  } catch (error) {
    events.task({ ...progress, done: true, error: error instanceof Error ? error.message : String(error) });
    throw error;
  }
}
