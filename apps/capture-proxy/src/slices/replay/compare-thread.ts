import { parentPort, workerData } from "node:worker_threads";
import type { Comparison } from "./compare-in-worker.ts";
import { compareEntriesNow } from "./compare-entries-now.ts";

parentPort?.postMessage(JSON.stringify(compareEntriesNow(workerData as Comparison)));
