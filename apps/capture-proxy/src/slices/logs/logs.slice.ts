import type { logsOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { compileTrafficLog } from "./logs.compile.ts";
import { createTrafficLogObserver } from "./logs.observer.ts";
import { createLogsOperations } from "./logs.operations.ts";
import { TrafficLog } from "./traffic-log.ts";

/** Log files over the API, and optional traffic logging. */
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
      // The log level has precedence: at `warn` no traffic is logged.
      plan: () => (plan !== undefined && log.isLevelEnabled("info") ? plan : undefined),
      add: (event) => traffic.add(event),
    }),
  };
}
