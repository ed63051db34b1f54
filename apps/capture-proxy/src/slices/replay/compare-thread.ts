// Tested by ../../../test/replay-diff.test.ts
import { parentPort, workerData } from "node:worker_threads";
import type { Comparison } from "./compare-aside.ts";
import { compareEntriesNow } from "./compare-now.ts";

parentPort?.postMessage(JSON.stringify(compareEntriesNow(workerData as Comparison)));
