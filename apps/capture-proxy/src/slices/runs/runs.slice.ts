import type { runsOperations } from "@headworks/capture-contract";
import type { OpenSessionProxy, Slice, SliceHost } from "#slice.ts";
import { RunningPrograms } from "./running-programs.ts";
import { createRunsOperations } from "./runs.operations.ts";

/** Runs: programs whose traffic is separated by a proxy and a session of their own. */
export function createRunsSlice(host: SliceHost, openProxy: OpenSessionProxy): Slice<typeof runsOperations> {
  const programs = new RunningPrograms(host, openProxy);
  return {
    name: "runs",
    operations: createRunsOperations(programs),
    observer: programs,
    worker: programs,
  };
}
