import type { configOperations } from "@headworks/capture-contract";
import type { RuleBundles } from "#portable/rule-bundles.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { createConfigOperations } from "./config.operations.ts";

/** Settings over the API, alone and together with all rules. */
export function createConfigSlice(host: SliceHost, bundles: RuleBundles): Slice<typeof configOperations> {
  return { name: "config", operations: createConfigOperations(host, bundles) };
}
