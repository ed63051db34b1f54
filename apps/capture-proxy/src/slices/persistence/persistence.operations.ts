import type { persistenceOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ApiError } from "#api/api-error.ts";
import { readImport } from "#portable/import-body.ts";
import type { RuleBundles } from "#portable/rule-bundles.ts";
import type { SavedRules } from "./persistence.store.ts";

export function createPersistenceOperations(
  bundles: RuleBundles,
  saved: SavedRules,
): Handlers<typeof persistenceOperations> {
  return {
    exportRules: () => ({ status: 200, body: { data: JSON.stringify(bundles.export()) } }),
    importRules: async ({ query, body }) => {
      const { document, ...request } = await readImport(body, query, ["data"]);
      const sections = bundles.import(document, request);
      const { mode, dryRun } = request;
      return { status: 200, body: { success: true, mode, dry_run: dryRun, sections } };
    },
    saveRules: ({ headers }) => {
      if (headers["x-weir-confirm"] !== "true") {
        throw new ApiError("CONFIRM_REQUIRED", "Missing X-Weir-Confirm header: send `X-Weir-Confirm: true`");
      }
      const bundle = bundles.export();
      saved.write(bundle);
      return { status: 200, body: { success: true, saved_at: bundle.exported_at } };
    },
    loadRules: () => {
      const bundle = saved.read();
      if (bundle === undefined) return { status: 200, body: { success: true, saved_at: null, sections: {} } };
      const sections = bundles.import(bundle, { mode: "replace", dryRun: false, at: "saved-rules.json" });
      return { status: 200, body: { success: true, saved_at: String(bundle["exported_at"]), sections } };
    },
  };
}
