import type { persistenceOperations } from "@headworks/capture-contract";
import type { RuleBundles } from "#portable/rule-bundles.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { createPersistenceOperations } from "./persistence.operations.ts";
import { createSavedRules } from "./persistence.store.ts";

/** Export, import, saving and loading of all rules at once. */
export function createPersistenceSlice(host: SliceHost, bundles: RuleBundles): Slice<typeof persistenceOperations> {
  return { name: "persistence", operations: createPersistenceOperations(bundles, createSavedRules(host.dataDir)) };
}
