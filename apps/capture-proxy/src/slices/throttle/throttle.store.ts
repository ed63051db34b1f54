import type { Database } from "#storage/database.ts";
import { NO_THROTTLE } from "./throttle-profile.ts";
import type { Profile } from "./throttle-profile.ts";

export interface StoredThrottle {
  readonly profile: Profile;
  readonly enabled: boolean;
}

/** The throttle's only row; a change is durable when its call returns. */
export interface ThrottleStore {
  read(): StoredThrottle;
  write(throttle: StoredThrottle): void;
}

export function createThrottleStore(database: Database): ThrottleStore {
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
