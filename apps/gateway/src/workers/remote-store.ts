import type { StateStore } from "#storage/state-store.ts";
import type { ProcessLink } from "./process-link.ts";
import type { ControlCalls, WorkerCalls } from "./worker-calls.ts";

/**
 * The state store as a worker has it: charges and usage counts go to the control process, which owns the file; all
 * charges of one turn are one message, and the store's group commit spans the workers. Everything else is the control
 * process's business and rejects here.
 */
export function remoteStore(link: ProcessLink<ControlCalls, WorkerCalls>): StateStore {
  const foreign = async (): Promise<never> =>
    await Promise.reject(new Error("Only the control process reads the state store"));
  const nothing = async (): Promise<void> => await Promise.resolve();
  return {
    quotas: {
      charge: async (consumer, budgets, enforce) => {
        try {
          return await link.ask("charge", [consumer, budgets, enforce]);
        } catch (error) {
          return { outcome: "failed", error: error instanceof Error ? error.message : String(error) };
        }
      },
      usage: foreign,
      adjust: foreign,
      // Done by the control process before it lets a generation run here.
      syncConsumers: nothing,
    },
    outbox: { append: foreign, acknowledge: foreign, pending: foreign },
    usage: {
      add: async (rows) => await link.ask("addUsage", rows),
      totals: foreign,
      oldestHour: foreign,
      addRun: foreign,
      runs: foreign,
      // The window of this moment was written already, so there is never anything to export here.
      lastScheduled: async (_window, beforeS) => await Promise.resolve(beforeS),
    },
    // Which keys there are is told to workers as it changes.
    credentials: { all: foreign, add: foreign, retire: foreign },
    recordGeneration: foreign,
    generations: foreign,
    generation: foreign,
    prune: nothing,
    close: nothing,
  };
}
