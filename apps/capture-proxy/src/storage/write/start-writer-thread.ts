import { Worker } from "node:worker_threads";

/**
 * Starts the writer's thread, which does nothing until it is handed to a store: loading its code takes a tenth of a second
 * that the rest of the program may be loaded in. Until then it keeps no process from ending.
 */
export function startWriterThread(): Worker {
  const worker = new Worker(new URL("./writer.worker.ts", import.meta.url), {
    name: "weir-writer",
    // Each batch is garbage at once; without a bound the heap would grow before V8 looked.
    resourceLimits: { maxYoungGenerationSizeMb: 16 },
  });
  worker.unref();
  return worker;
}
