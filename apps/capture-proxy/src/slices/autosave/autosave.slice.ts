import { join } from "node:path";
import type { autosaveOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { createAutosaveOperations } from "./autosave.operations.ts";
import { AutoSaveTask } from "./autosave.task.ts";

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
