import { join } from "node:path";
import type { mirrorOperations, Settings } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { compileMirrorPolicy, MirrorObserver } from "./mirror.observer.ts";
import type { MirrorPolicy } from "./mirror.observer.ts";
import { createMirrorOperations } from "./mirror.operations.ts";
import { MirrorQueue } from "./mirror-queue.ts";

/** Time limit for writing queued files at shutdown. */
const DRAIN_MS = 5000;

/** Writes response bodies to files for other tools. */
export function createMirrorSlice(host: SliceHost): Slice<typeof mirrorOperations> {
  const { settings, store, log, clock, events } = host;
  const defaultDir = join(host.dataDir, "mirror");
  const onChange = (): void => events.changed("mirror");
  const queue = new MirrorQueue({
    store,
    log,
    nowMs: () => clock.now(),
    monotonicMs: () => clock.monotonic(),
    after: (delayMs, callback) => clock.after(delayMs, callback),
    onTurn: onChange,
  });
  let refused: string | undefined;
  /** Undefined while the mirror is off or its directory is refused, which the status reports. */
  const policyOf = (running: Settings): MirrorPolicy | undefined => {
    const policy = compileMirrorPolicy(running.mirror, defaultDir);
    const problem = policy === undefined ? undefined : settings.outputProblem(policy.outputDir);
    if (problem !== undefined && problem !== refused) queue.drop(`The output directory ${problem}`, 0);
    refused = problem;
    return problem === undefined ? policy : undefined;
  };
  const observer = new MirrorObserver(queue, policyOf(settings.running));
  let known = JSON.stringify(settings.configured.mirror);
  settings.onChange((running) => {
    observer.policy = policyOf(running);
    if (observer.policy === undefined) queue.rest();
    const changed = JSON.stringify(settings.configured.mirror);
    if (changed === known) return;
    known = changed;
    onChange();
  });
  return {
    name: "mirror",
    operations: createMirrorOperations({ settings, queue, defaultDir, onChange: () => events.changed("config") }),
    observer,
    task: { start: () => undefined, stopped: async () => await queue.close(DRAIN_MS) },
  };
}
