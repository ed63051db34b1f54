import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import type { RuleBundle, persistenceOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { readJson } from "@headworks/json";
import { ApiError } from "#api/api-error.ts";
import { readImport } from "#portable/import-body.ts";
import type { RuleBundles } from "#portable/rule-bundles.ts";
import type { Slice, SliceHost } from "#slice.ts";

/** Rules may contain tokens and private response bodies. */
const MODE = 0o600;

/** Export, import, saving and loading of all rules at once. */
export function createPersistenceSlice(host: SliceHost, bundles: RuleBundles): Slice<typeof persistenceOperations> {
  return { name: "persistence", operations: createPersistenceOperations(bundles, createSavedRules(host.dataDir)) };
}

function createPersistenceOperations(bundles: RuleBundles, saved: SavedRules): Handlers<typeof persistenceOperations> {
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

/** The last saved bundle, in `<data_dir>/saved-rules.json`. */
interface SavedRules {
  /** Durable on return. The file is replaced atomically. */
  write(bundle: RuleBundle): void;
  /** Undefined when nothing was saved. Throws 409 for a damaged file. */
  read(): Readonly<Record<string, unknown>> | undefined;
}

function createSavedRules(dataDir: string): SavedRules {
  const path = join(dataDir, "saved-rules.json");
  return {
    write: (bundle) => {
      try {
        replaceFile(path, Buffer.from(JSON.stringify(bundle)));
      } catch (cause) {
        const reason = (cause as NodeJS.ErrnoException).code ?? "unknown error";
        throw new ApiError("SERVICE_UNAVAILABLE", `The rules cannot be saved: ${reason}`, { cause });
      }
    },
    read: () => {
      let text: string;
      try {
        text = readFileSync(path, "utf8");
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
        const reason = (cause as NodeJS.ErrnoException).code ?? "unknown error";
        throw new ApiError("SERVICE_UNAVAILABLE", `The saved rules cannot be read: ${reason}`, { cause });
      }
      return savedDocument(text);
    },
  };
}

function savedDocument(text: string): Readonly<Record<string, unknown>> {
  let document: unknown;
  try {
    document = readJson(text);
  } catch {
    document = undefined;
  }
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    throw new ApiError("CONFLICT", "saved-rules.json in the data directory is damaged: save the rules again");
  }
  return document as Readonly<Record<string, unknown>>;
}

function replaceFile(path: string, bytes: Buffer): void {
  const temporary = `${path}.${process.pid}-${randomBytes(4).toString("hex")}.tmp`;
  try {
    const file = openSync(temporary, "wx", MODE);
    try {
      for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  // Makes the rename durable. Windows cannot open directories and journals renames.
  if (process.platform === "win32") return;
  const directory = openSync(dirname(path), "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
