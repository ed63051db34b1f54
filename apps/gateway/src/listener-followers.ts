import type { Issue } from "@headworks/gateway-contract";
import type { CheckedReading, GenerationSubscribers } from "#config/generations.ts";
import type { ListenerSet } from "#listener/listener-set.ts";
import type { ListenerProblem } from "#listener/listen-error.ts";

/** Applies published generations to the listeners of this process. `graceMs`: for removed listeners. */
export function listenerFollowers(
  listeners: () => ListenerSet | undefined,
  graceMs: () => number,
): GenerationSubscribers {
  return {
    prepare: async (_candidate, reading) => {
      const problems = (await listeners()?.prepare(reading.document.listeners)) ?? [];
      return listenerIssues(problems, reading);
    },
    publish: async () => await listeners()?.take(graceMs()),
    discard: () => void listeners()?.giveUp(),
  };
}

/** Turns listener problems into issues of the document. */
export function listenerIssues(problems: readonly ListenerProblem[], { positions }: CheckedReading): Issue[] {
  return problems.map(({ at, message }) => ({
    code: "compile_failed",
    ...positions.locate(["listeners", at]),
    message,
    severity: "error",
  }));
}
