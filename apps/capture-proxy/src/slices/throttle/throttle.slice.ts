import type { throttleOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { ThrottleInterceptor } from "./throttle.interceptor.ts";
import { createThrottleOperations } from "./throttle.operations.ts";
import { portableThrottle } from "./portable-throttle.ts";
import { createThrottleStore } from "./throttle.store.ts";
import { ThrottledLine } from "./throttled-limiter.ts";

/** A line as slow and lossy as the ones users have. */
export function createThrottleSlice(host: SliceHost): Slice<typeof throttleOperations> {
  const { clock, events } = host;
  const store = createThrottleStore(host.database);
  const line = new ThrottledLine(clock);
  const interceptor = new ThrottleInterceptor(line, clock);
  const takeOn = (): void => {
    line.set(store.read());
    interceptor.releaseStalled();
  };
  takeOn();
  const onChange = (): void => {
    takeOn();
    events.changed("throttle");
  };
  return {
    name: "throttle",
    operations: createThrottleOperations({ store, line, interceptor, onChange }),
    interceptor,
    observer: interceptor,
    portableRules: portableThrottle(store, onChange),
  };
}
