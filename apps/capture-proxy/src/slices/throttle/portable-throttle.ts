import { PortableThrottle } from "@headworks/capture-contract";
import { portableList } from "#portable/portable-list.ts";
import type { PortableRules } from "#slice.ts";
import { profileIssues, readProfile } from "./throttle-profile.ts";
import { showThrottle } from "./throttle.operations.ts";
import type { ThrottleStore } from "./throttle.store.ts";

const ID = "throttle";

/** The profile as portable rules: a list of one without its brackets, so that the section is what the API shows. */
export function portableThrottle(store: ThrottleStore, reload: () => void): PortableRules {
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
