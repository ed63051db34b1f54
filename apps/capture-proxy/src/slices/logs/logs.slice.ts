import type { logsOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { compileTrafficLog } from "./logs.compile.ts";
import { createTrafficLogObserver } from "./logs.observer.ts";
import { createLogsOperations } from "./logs.operations.ts";
import { TrafficLog } from "./traffic-log.ts";

/** The log's files over the API, and traffic in the log where that is switched on. */
export function createLogsSlice(host: SliceHost): Slice<typeof logsOperations> {
  const { settings, log, logs } = host;
  const traffic = new TrafficLog(log, logs);
  let plan = compileTrafficLog(settings.running);
  settings.onChange((running) => {
    plan = compileTrafficLog(running);
  });
  return {
    name: "logs",
    operations: createLogsOperations(host, traffic),
    observer: createTrafficLogObserver({
      // Verbosity comes first: whoever asked for warnings alone gets no traffic.
      plan: () => (plan !== undefined && log.isLevelEnabled("info") ? plan : undefined),
      add: (event) => traffic.add(event),
    }),
  };
}
