import type { focusOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { createFocusOperations } from "./focus.operations.ts";
import { createFocusStore } from "./focus.store.ts";

/** Host patterns that the web UI emphasizes; traffic is not affected. */
export function createFocusSlice(host: SliceHost): Slice<typeof focusOperations> {
  return { name: "focus", operations: createFocusOperations(host, createFocusStore(host.database)) };
}
