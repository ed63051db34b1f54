import type { exportOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { createExportOperations } from "./export.operations.ts";

/** Captured traffic in the forms that other programs take: HAR documents, command lines, code. */
export function createExportSlice(host: SliceHost): Slice<typeof exportOperations> {
  return { name: "export", operations: createExportOperations(host) };
}
