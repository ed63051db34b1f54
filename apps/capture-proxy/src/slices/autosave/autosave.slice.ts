import { join } from "node:path";
import type { AutoSaveStatus, autosaveOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ApiError, changeSettings } from "#api/api-error.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { AutoSaveTask, failureSentence } from "./autosave.task.ts";

/** Saves snapshots of the active session at intervals. */
export function createAutosaveSlice(host: SliceHost): Slice<typeof autosaveOperations> {
  const { store, settings, clock, log, events } = host;
  const defaultDir = join(host.dataDir, "backups");
  const task = new AutoSaveTask({ store, settings, clock, log, events, defaultDir });
  let known = JSON.stringify(settings.configured.auto_save);
  settings.onChange(() => {
    const changed = JSON.stringify(settings.configured.auto_save);
    if (changed === known) return;
    known = changed;
    events.changed("autosave");
  });
  return {
    name: "autosave",
    operations: createAutosaveOperations({ settings, task, defaultDir, onChange: () => events.changed("config") }),
    task,
  };
}

interface AutoSaveParts {
  readonly settings: SliceHost["settings"];
  readonly task: Pick<AutoSaveTask, "status" | "saveNow">;
  readonly defaultDir: string;
  readonly onChange: () => void;
}

/** Fields a change may set; it may also hold read-only fields, which are ignored. */
const FIELDS = [
  "enabled",
  "interval_seconds",
  "export_format",
  "output_dir",
  "max_backups",
  "rotate_after_requests",
  "rotate_after_minutes",
] as const;

function createAutosaveOperations(parts: AutoSaveParts): Handlers<typeof autosaveOperations> {
  const { settings, task, defaultDir, onChange } = parts;
  return {
    getAutosave: () => ({ status: 200, body: autosaveStatus(parts) }),
    updateAutosave: ({ body }) => {
      const before = settings.configured.auto_save;
      // Sending back the status changes nothing: the default directory moves with the data directory.
      const shown = { ...body, ...(body.output_dir === defaultDir && { output_dir: null }) };
      const given = FIELDS.filter((field) => shown[field] !== undefined).map((field) => [field, shown[field]]);
      const change = Object.fromEntries(given) as typeof body;
      changeSettings("auto_save/", () => settings.patch({ auto_save: change }));
      if (settings.configured.auto_save !== before) onChange();
      return { status: 200, body: autosaveStatus(parts) };
    },
    saveSnapshot: async () => {
      try {
        return { status: 200, body: await task.saveNow() };
      } catch (error) {
        throw new ApiError("SERVICE_UNAVAILABLE", `The snapshot was not saved: ${failureSentence(error)}`, {
          cause: error,
        });
      }
    },
  };
}

function autosaveStatus({ settings, task, defaultDir }: AutoSaveParts): AutoSaveStatus {
  const shown = settings.configured.auto_save;
  const { restartPending, overriddenBy } = settings.changesOf("auto_save");
  return {
    ...shown,
    output_dir: shown.output_dir ?? defaultDir,
    ...task.status(),
    restart_pending: restartPending.length > 0,
    overridden_by: overriddenBy,
  };
}
