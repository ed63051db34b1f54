import { PortableThrottle, type throttleOperations } from "@headworks/capture-contract";
import { portableList } from "#portable/portable-list.ts";
import type { PortableRules, Slice, SliceHost } from "#slice.ts";
import { profileIssues, readProfile } from "./throttle-profile.ts";
import { ThrottleInterceptor } from "./throttle.interceptor.ts";
import { createThrottleOperations, showThrottle } from "./throttle.operations.ts";
import { createThrottleStore, type ThrottleStore } from "./throttle.store.ts";
import { ThrottledLimiter } from "./throttled-limiter.ts";

const ID = "throttle";

/** Simulates slow and lossy networks. */
export function createThrottleSlice(host: SliceHost): Slice<typeof throttleOperations> {
  const { clock, events } = host;
  const store = createThrottleStore(host.database);
  const line = new ThrottledLimiter(clock);
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

/** The profile as portable rules: a list of one element, unwrapped so that the section equals the API's form. */
function portableThrottle(store: ThrottleStore, reload: () => void): PortableRules {
  const list = portableList<PortableThrottle>({
    key: "throttle",
    schemaVersion: 1,
    schemas: [PortableThrottle],
    list: () => [{ id: ID, ...showThrottle(store.read()) }],
    check: ({ profile }) => profileIssues(profile),
    write: ([throttle]) => {
      if (throttle !== undefined) store.write({ profile: readProfile(throttle.profile), enabled: throttle.enabled });
    },
    reload,
  });
  return {
    ...list,
    exportRules: () => showThrottle(store.read()),
    importRules: (data, request) => {
      const isObject = typeof data === "object" && data !== null && !Array.isArray(data);
      if (!isObject) return { issues: [{ path: "", message: "must be an object" }] };
      const outcome = list.importRules([{ ...data, id: ID }], request);
      if ("counts" in outcome) return outcome;
      return { issues: outcome.issues.map(({ path, message }) => ({ path: path.replace(/^\/0/, ""), message })) };
    },
  };
}
