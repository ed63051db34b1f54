import { randomInt } from "node:crypto";
import { compileHostPatterns } from "@headworks/host-patterns";
import type { HostMatcher } from "@headworks/host-patterns";
import { BandwidthLimiter } from "#exchange/bandwidth-limiter.ts";
import type { ThrottledPace } from "#exchange/bandwidth-limiter.ts";
import type { Clock } from "#slice.ts";
import { NO_THROTTLE } from "./throttle-profile.ts";
import type { Profile, StoredThrottle } from "./throttle-profile.ts";

/** The outcome for one request. */
export type Passage =
  | { readonly kind: "pass"; readonly delayMs: number }
  | { readonly kind: "lost"; readonly mode: "reset" | "stall" };

const STEPS = 2 ** 32;
const evenRandom = (): number => randomInt(STEPS) / STEPS;

/** The bandwidth limiter that all throttled connections share, with the current profile. */
export class ThrottledLimiter {
  readonly pace: ThrottledPace;
  readonly #random: () => number;
  #profile: Profile = NO_THROTTLE;
  #isOn = false;
  #matcher: HostMatcher | undefined;

  /** `random` returns numbers in [0, 1). */
  constructor(clock: Clock, random: () => number = evenRandom) {
    this.pace = { down: new BandwidthLimiter(clock), up: new BandwidthLimiter(clock) };
    this.#random = random;
  }

  get profile(): Profile {
    return this.#profile;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** Applies a profile; transfers in progress get its bandwidth at once. */
  set({ profile, enabled }: StoredThrottle): void {
    this.#profile = profile;
    this.#isOn = enabled;
    this.#matcher = profile.hosts.length === 0 ? undefined : compileHostPatterns(profile.hosts, "ignored");
    this.pace.down.setRate(enabled ? profile.downloadBytesPerSecond : 0);
    this.pace.up.setRate(enabled ? profile.uploadBytesPerSecond : 0);
  }

  appliesTo(host: string): boolean {
    return this.#matcher === undefined || this.#matcher.find(host) !== undefined;
  }

  passage(): Passage {
    const { latencyMs, jitterMs, lossPercent, lossMode } = this.#profile;
    if (!this.#isOn) return { kind: "pass", delayMs: 0 };
    if (lossPercent > 0 && this.#random() * 100 < lossPercent) return { kind: "lost", mode: lossMode };
    const jitter = jitterMs === 0 ? 0 : (this.#random() * 2 - 1) * jitterMs;
    return { kind: "pass", delayMs: Math.max(0, latencyMs + jitter) };
  }
}
