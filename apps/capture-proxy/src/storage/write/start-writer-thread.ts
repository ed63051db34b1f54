import { Worker } from "node:worker_threads";

/**
 * Starts the writer thread early: loading its code takes about 100 ms, in parallel with the rest of the program. It is
 * idle, and keeps no process alive, until a store takes it.
 */
export function startWriterThread(): Worker {
  const worker = new Worker(new URL("./writer-thread.ts", import.meta.url), {
    name: "weir-writer",
    // Batches are garbage at once; unbounded, the heap grows before V8 collects.
    resourceLimits: { maxYoungGenerationSizeMb: 16 },
  });
  worker.unref();
  return worker;
}
