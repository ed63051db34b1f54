// Tested by import-handlers.test.ts
import { Worker, parentPort, workerData } from "node:worker_threads";
import type { Clock } from "#slice.ts";
import { readImport } from "./import-documents.ts";
import type { ImportRequest } from "./import-documents.ts";
import { ImportProblem } from "./imported-mocks.ts";
import type { ImportedMocks } from "./imported-mocks.ts";

type Outcome =
  | { readonly ok: true; readonly imported: ImportedMocks }
  | { readonly ok: false; readonly problem: string };

/** Tells the thread that was started below from any other that loads this file. */
const MARK = "readsMockImport";
const MOST_MS = 60_000;
const MOST_HEAP_MB = 1024;

/**
 * Reads a document on a thread of its own, because megabytes of YAML take seconds that traffic must not wait for. Throws
 * {@link ImportProblem} also for a document that takes more time or memory than any honest one.
 */
export function readImportApart(request: ImportRequest, clock: Clock, signal: AbortSignal): Promise<ImportedMocks> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), {
      workerData: { [MARK]: true, request },
      resourceLimits: { maxOldGenerationSizeMb: MOST_HEAP_MB },
    });
    const stop = (): void => void worker.terminate();
    const cancelStop = clock.after(MOST_MS, stop);
    signal.addEventListener("abort", stop);
    worker.once("message", (outcome: Outcome) => {
      if (outcome.ok) resolve(outcome.imported);
      else reject(new ImportProblem(outcome.problem));
    });
    worker.once("error", (error: NodeJS.ErrnoException) => {
      const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      reject(isMemory ? new ImportProblem("The document takes too much memory to read") : error);
    });
    worker.once("exit", () => {
      cancelStop();
      signal.removeEventListener("abort", stop);
      // After a message this changes nothing.
      reject(new ImportProblem("The document takes too long to read"));
    });
  });
}

const given = workerData as { readonly [MARK]?: true; readonly request: ImportRequest } | null;
if (given?.[MARK] === true) parentPort?.postMessage(outcomeOf(given.request));

function outcomeOf(request: ImportRequest): Outcome {
  try {
    return { ok: true, imported: readImport(request) };
  } catch (error) {
    if (error instanceof ImportProblem) return { ok: false, problem: error.message };
    throw error;
  }
}
