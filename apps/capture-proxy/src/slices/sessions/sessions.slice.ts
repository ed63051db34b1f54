import type { sessionsOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { createSessionsOperations } from "./sessions.operations.ts";

/** Capture sessions: named sets of entries; captured traffic goes into the active one. */
export function createSessionsSlice(host: SliceHost): Slice<typeof sessionsOperations> {
  return { name: "sessions", operations: createSessionsOperations(host) };
}
