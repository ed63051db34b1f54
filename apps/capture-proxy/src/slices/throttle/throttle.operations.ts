import type { ThrottleState, throttleOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { parseProfile, PRESETS, showProfile } from "./throttle-profile.ts";
import type { ThrottleInterceptor } from "./throttle.interceptor.ts";
import type { StoredThrottle, ThrottleStore } from "./throttle.store.ts";
import type { ThrottledLimiter } from "./throttled-limiter.ts";

export interface ThrottleOperationsParts {
  readonly store: ThrottleStore;
  readonly line: ThrottledLimiter;
  readonly interceptor: ThrottleInterceptor;
  /** Applies the stored profile. */
  readonly onChange: () => void;
}

export function showThrottle({ profile, enabled }: StoredThrottle): ThrottleState {
  return { profile: showProfile(profile), enabled };
}

export function createThrottleOperations(parts: ThrottleOperationsParts): Handlers<typeof throttleOperations> {
  const { store, line, interceptor, onChange } = parts;
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
      const { down, up } = line.pace;
      return {
        status: 200,
        body: {
          download_bytes: down.carriedBytes,
          upload_bytes: up.carriedBytes,
          waiting_downloads: down.waitingFlows,
          waiting_uploads: up.waitingFlows,
          delayed_count: interceptor.delayedCount,
          lost_count: interceptor.lostCount,
          stalled_count: interceptor.stalledCount,
        },
      };
    },
  };
}
