import { parentPort, workerData } from "node:worker_threads";
import type { Comparison } from "./compare-entries-now.ts";
import { compareEntriesNow } from "./compare-entries-now.ts";

parentPort?.postMessage(JSON.stringify(compareEntriesNow(workerData as Comparison)));
