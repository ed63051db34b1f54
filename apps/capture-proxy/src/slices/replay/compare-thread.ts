import { parentPort, workerData } from "node:worker_threads";
import { compareEntriesNow, type Comparison } from "./compare-in-worker.ts";

parentPort?.postMessage(JSON.stringify(compareEntriesNow(workerData as Comparison)));
