import type { exportOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { createExportOperations } from "./export.operations.ts";

/** Exports captured traffic as HAR documents, command lines and code. */
export function createExportSlice(host: SliceHost): Slice<typeof exportOperations> {
  return { name: "export", operations: createExportOperations(host) };
}
