import { PortableThrottle, type throttleOperations, type ThrottleState } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { portableList } from "#portable/portable-list.ts";
import type { PortableRules, Slice, SliceHost } from "#slice.ts";
import type { Database } from "#storage/database.ts";
import {
  NO_THROTTLE,
  parseProfile,
  PRESETS,
  type Profile,
  profileIssues,
  readProfile,
  showProfile,
  type StoredThrottle,
} from "./throttle-profile.ts";
import { ThrottledLimiter, ThrottleInterceptor } from "./throttle.interceptor.ts";

const ID = "throttle";

/** Simulates slow and lossy networks. */
export function createThrottleSlice(host: SliceHost): Slice<typeof throttleOperations> {
  const { clock, events } = host;
  const store = createThrottleStore(host.database);
  const limiter = new ThrottledLimiter(clock);
  const interceptor = new ThrottleInterceptor(limiter, clock);
  const applyProfile = (): void => {
    limiter.set(store.read());
    interceptor.releaseStalled();
  };
  applyProfile();
  const onChange = (): void => {
    applyProfile();
    events.changed("throttle");
  };
  return {
    name: "throttle",
    operations: createThrottleOperations({ store, limiter, interceptor, onChange }),
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

interface ThrottleOperationsParts {
  readonly store: ThrottleStore;
  readonly limiter: ThrottledLimiter;
  readonly interceptor: ThrottleInterceptor;
  /** Applies the stored profile. */
  readonly onChange: () => void;
}

function showThrottle({ profile, enabled }: StoredThrottle): ThrottleState {
  return { profile: showProfile(profile), enabled };
}

function createThrottleOperations(parts: ThrottleOperationsParts): Handlers<typeof throttleOperations> {
  const { store, limiter, interceptor, onChange } = parts;
  const write = (throttle: StoredThrottle): void => {
    store.write(throttle);
    onChange();
  };
  return {
    getThrottle: () => ({ status: 200, body: showThrottle(store.read()) }),
    setThrottle: ({ body }) => {
      const throttle = { profile: parseProfile(body), enabled: body.enabled ?? store.read().enabled };
      write(throttle);
      return { status: 200, body: showThrottle(throttle) };
    },
    setThrottleEnabled: ({ body }) => {
      const present = store.read();
      const enabled = body?.enabled ?? !present.enabled;
      write({ ...present, enabled });
      return { status: 200, body: { enabled } };
    },
    listThrottlePresets: () => ({ status: 200, body: PRESETS.map(showProfile) }),
    getThrottleStats: () => {
      const { down, up } = limiter.pace;
      return {
        status: 200,
        body: {
          download_bytes: down.carriedBytes,
          upload_bytes: up.carriedBytes,
          waiting_downloads: down.waitingStreams,
          waiting_uploads: up.waitingStreams,
          delayed_count: interceptor.delayedCount,
          lost_count: interceptor.lostCount,
          stalled_count: interceptor.stalledCount,
        },
      };
    },
  };
}

/** The throttle's only row; a change is durable when its call returns. */
interface ThrottleStore {
  read(): StoredThrottle;
  write(throttle: StoredThrottle): void;
}

function createThrottleStore(database: Database): ThrottleStore {
  const read = database.prepare("SELECT profile, enabled FROM throttle");
  const write = database.prepare(
    `INSERT INTO throttle (id, profile, enabled) VALUES (1, ?, ?)
     ON CONFLICT (id) DO UPDATE SET profile = excluded.profile, enabled = excluded.enabled`,
  );
  return {
    read: () => {
      const row = read.get();
      if (row === undefined) return { profile: NO_THROTTLE, enabled: false };
      return { profile: JSON.parse(String(row["profile"])) as Profile, enabled: Number(row["enabled"]) === 1 };
    },
    write: ({ profile, enabled }) => {
      write.run(JSON.stringify(profile), Number(enabled));
    },
  };
}
