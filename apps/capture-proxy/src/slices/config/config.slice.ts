import type { configOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { createConfigOperations } from "./config.operations.ts";

/** Settings over the API. */
export function createConfigSlice(host: SliceHost): Slice<typeof configOperations> {
  return { name: "config", operations: createConfigOperations(host) };
}
