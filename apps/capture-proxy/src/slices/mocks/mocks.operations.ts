import type { mocksOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import type { EventSink } from "#slice.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import { collectionHandlers } from "./collection-handlers.ts";
import { historyHandlers } from "./history-handlers.ts";
import { importHandlers } from "./import-handlers.ts";
import type { MockCompiler, MockSet } from "./mocks.compile.ts";
import type { MockRecorder } from "./mocks.observer.ts";
import { recordingHandlers } from "./recording-handlers.ts";
import type { RuleBook } from "./rule-book.ts";
import { ruleHandlers } from "./rule-handlers.ts";
import type { Serving } from "./serving-handlers.ts";
import { trialHandlers } from "./trial-handlers.ts";

export interface MocksOperationsParts {
  readonly book: RuleBook;
  readonly compiler: MockCompiler;
  readonly rules: () => MockSet;
  readonly recorder: MockRecorder;
  readonly serving: Serving;
  readonly captured: CaptureStore;
  readonly events: Pick<EventSink, "task">;
  /** Between 0 and 1. */
  readonly random: () => number;
}

/** Handlers of all operations on mocks. */
export function createMocksOperations(parts: MocksOperationsParts): Handlers<typeof mocksOperations> {
  const { book } = parts;
  return {
    ...ruleHandlers(book),
    ...trialHandlers(parts),
    ...importHandlers(book, parts.events),
    ...collectionHandlers(book),
    ...historyHandlers(book),
    ...recordingHandlers(parts),
    ...parts.serving.handlers,
  };
}
