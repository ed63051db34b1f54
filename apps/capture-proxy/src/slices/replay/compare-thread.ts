import { serveRequests } from "@headworks/worker-host";
import { compareEntriesNow, type Comparison } from "./compare-in-worker.ts";

serveRequests((comparison: Comparison) => ({ value: JSON.stringify(compareEntriesNow(comparison)), transfer: [] }));
