import { randomInt } from "node:crypto";
import {
  type NewThrottle,
  PortableThrottle,
  type throttleOperations,
  type ThrottleProfile,
  type ThrottleState,
} from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { compileHostPatterns, type HostMatcher, validateHostPattern } from "@headworks/host-patterns";
import { validationError } from "#api/api-error.ts";
import { BandwidthLimiter, type ThrottledPace } from "#exchange/bandwidth-limiter.ts";
import type { Exchange } from "#exchange/exchange.ts";
import { CONTINUE, type Interceptor, type Observer, type Target, type Verdict } from "#exchange/phases.ts";
import { portableList } from "#portable/portable-list.ts";
import type { Clock, PortableRules, Slice, SliceHost } from "#slice.ts";
import type { Database } from "#storage/database.ts";

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

  /** Transfers in progress get the new bandwidth at once. */
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

/** Stands in for the rule id in traces. */
const RULE_ID = "throttle";

/** Timers have whole milliseconds, counted from the start of the event loop's turn; the rest of a delay is polled. */
const TIMER_LATE_MS = 1.5;

/**
 * Attaches exchanges and tunnels to the shared limiter. Every exchange of a matching host is attached, limited or not,
 * so that a profile change reaches transfers in progress.
 */
export class ThrottleInterceptor implements Interceptor, Observer {
  readonly name = "throttle";
  delayedCount = 0;
  lostCount = 0;
  readonly #limiter: ThrottledLimiter;
  readonly #clock: Clock;
  /** Lost requests whose clients still wait, by exchange id. */
  readonly #stalled = new Map<string, () => void>();

  constructor(limiter: ThrottledLimiter, clock: Clock) {
    this.#limiter = limiter;
    this.#clock = clock;
  }

  get stalledCount(): number {
    return this.#stalled.size;
  }

  releaseStalled(): void {
    const stalled = [...this.#stalled.values()];
    this.#stalled.clear();
    for (const release of stalled) release();
  }

  onTarget(target: Target): Verdict | Promise<Verdict> {
    const limiter = this.#limiter;
    if (!limiter.appliesTo(target.host)) return CONTINUE;
    target.pace = limiter.pace;
    const passage = limiter.passage();
    if (passage.kind === "pass") return this.#delayed(passage.delayMs);
    this.lostCount += 1;
    return { kind: "abort", reason: `Lost by the throttle profile ${limiter.profile.name}`, closes: true };
  }

  onRequestHead(exchange: Exchange): Verdict | Promise<Verdict> {
    const limiter = this.#limiter;
    if (!limiter.appliesTo(exchange.request.host)) return CONTINUE;
    exchange.pace = limiter.pace;
    if (!limiter.isOn) return CONTINUE;
    const passage = limiter.passage();
    if (passage.kind === "lost") return this.#lost(exchange, passage.mode);
    this.#trace(exchange, shaping(limiter, passage.delayMs));
    return this.#delayed(passage.delayMs);
  }

  onFinished({ id }: { readonly id: string }): void {
    if (this.#stalled.size > 0) this.#stalled.delete(id);
  }

  #lost(exchange: Exchange, mode: "reset" | "stall"): Verdict | Promise<Verdict> {
    const { name, lossPercent } = this.#limiter.profile;
    this.lostCount += 1;
    this.#trace(exchange, [`lost (${lossPercent}% packet loss): ${mode === "reset" ? "reset" : "stalled"}`]);
    if (mode === "reset") return { kind: "abort", reason: `Lost by the throttle profile ${name}`, closes: true };
    const { promise, resolve } = Promise.withResolvers<Verdict>();
    this.#stalled.set(exchange.id, () => resolve(CONTINUE));
    return promise;
  }

  #delayed(delayMs: number): Verdict | Promise<Verdict> {
    if (delayMs === 0) return CONTINUE;
    this.delayedCount += 1;
    const clock = this.#clock;
    const dueMs = clock.monotonic() + delayMs;
    return new Promise((resolve) => {
      const look = (): void => {
        const leftMs = dueMs - clock.monotonic();
        if (leftMs > TIMER_LATE_MS) clock.after(leftMs - TIMER_LATE_MS, look);
        else if (leftMs > 0) clock.soon(look);
        else resolve(CONTINUE);
      };
      look();
    });
  }

  #trace(exchange: Exchange, changes: readonly string[]): void {
    const { name } = this.#limiter.profile;
    exchange.addTrace({ kind: "throttle", ruleId: RULE_ID, ruleName: name, phase: "request", changes });
  }
}

function shaping({ profile }: ThrottledLimiter, delayMs: number): string[] {
  const { downloadBytesPerSecond: down, uploadBytesPerSecond: up } = profile;
  return [
    ...(delayMs > 0 ? [`delayed by ${Math.round(delayMs)} ms`] : []),
    ...(down > 0 ? [`at most ${down} bytes/s down`] : []),
    ...(up > 0 ? [`at most ${up} bytes/s up`] : []),
  ];
}

type Passage =
  | { readonly kind: "pass"; readonly delayMs: number }
  | { readonly kind: "lost"; readonly mode: "reset" | "stall" };

export interface Profile {
  readonly name: string;
  /** 0 means no limit. */
  readonly downloadBytesPerSecond: number;
  readonly uploadBytesPerSecond: number;
  readonly latencyMs: number;
  readonly jitterMs: number;
  readonly lossPercent: number;
  readonly lossMode: "reset" | "stall";
  /** Host patterns; empty means all hosts. */
  readonly hosts: readonly string[];
}

interface StoredThrottle {
  readonly profile: Profile;
  readonly enabled: boolean;
}

interface PresetLine {
  readonly kbitDown: number;
  readonly kbitUp: number;
  readonly latencyMs: number;
  readonly jitterMs?: number;
  readonly lossPercent?: number;
}

/** Presets are given in kbit/s, profiles in bytes per second. */
const bytesOf = (kbitPerSecond: number): number => (kbitPerSecond * 1000) / 8;

function preset(name: string, line: PresetLine): Profile {
  return {
    name,
    downloadBytesPerSecond: bytesOf(line.kbitDown),
    uploadBytesPerSecond: bytesOf(line.kbitUp),
    latencyMs: line.latencyMs,
    jitterMs: line.jitterMs ?? 0,
    lossPercent: line.lossPercent ?? 0,
    lossMode: "reset",
    hosts: [],
  };
}

export const NO_THROTTLE = preset("None", { kbitDown: 0, kbitUp: 0, latencyMs: 0 });

/**
 * From slow to fast. Slow 3G and Fast 3G are those of Chrome's developer tools, whose latency covers the round trips of
 * a whole request; GPRS, EDGE ("Regular 2G"), DSL and 4G LTE are those of Firefox. 3G has the bandwidth of Firefox's
 * "Regular 3G" and lies between Chrome's two. Slow Wi-Fi and Satellite are our own. Offline loses every request,
 * because a bandwidth of 0 means no limit.
 */
const PRESETS: readonly Profile[] = [
  NO_THROTTLE,
  preset("GPRS (2G)", { kbitDown: 50, kbitUp: 20, latencyMs: 500 }),
  preset("EDGE (2G)", { kbitDown: 250, kbitUp: 50, latencyMs: 300 }),
  preset("Slow 3G", { kbitDown: 400, kbitUp: 400, latencyMs: 2000 }),
  preset("3G", { kbitDown: 750, kbitUp: 500, latencyMs: 1000 }),
  preset("Fast 3G", { kbitDown: 1440, kbitUp: 675, latencyMs: 563 }),
  preset("DSL", { kbitDown: 2000, kbitUp: 1000, latencyMs: 5 }),
  preset("4G LTE", { kbitDown: 4000, kbitUp: 3000, latencyMs: 20 }),
  preset("Slow Wi-Fi", { kbitDown: 4000, kbitUp: 4000, latencyMs: 20 }),
  preset("Satellite", { kbitDown: 5000, kbitUp: 2000, latencyMs: 600, jitterMs: 100, lossPercent: 1 }),
  preset("Offline", { kbitDown: 0, kbitUp: 0, latencyMs: 0, lossPercent: 100 }),
];

function showProfile(profile: Profile): ThrottleProfile {
  return {
    name: profile.name,
    download_bps: profile.downloadBytesPerSecond,
    upload_bps: profile.uploadBytesPerSecond,
    latency_ms: profile.latencyMs,
    jitter_ms: profile.jitterMs,
    packet_loss_percent: profile.lossPercent,
    loss_mode: profile.lossMode,
    hosts: [...profile.hosts],
    delay_ms: profile.latencyMs,
    device_id: null,
  };
}

type Given = NonNullable<NewThrottle["profile"]>;

/** Reads a profile in any accepted form; throws 400 for contradictions. */
function parseProfile(body: NewThrottle): Profile {
  const { profile, preset: presetName, enabled: _enabled, ...flat } = body;
  const [extra] = Object.entries(flat).flatMap(([field, value]) => (value === undefined ? [] : [field]));
  if (profile !== undefined && extra !== undefined) {
    throw validationError([{ path: `body/${extra}`, message: "cannot be combined with profile; move it inside" }]);
  }
  const at = profile === undefined ? "body" : "body/profile";
  const given = profile ?? flat;
  checkGiven(given, at);
  if (presetName !== undefined) return fromPreset(presetName, given, at);
  // A preset's name without values means the preset, not an unlimited profile.
  const { name, ...others } = given;
  const isPreset = PRESETS.some((known) => known.name === name) && VALUES.every((field) => given[field] === undefined);
  return isPreset && name !== undefined ? fromPreset(name, others, at) : written(given);
}

/** Fields a preset decides. */
const VALUES = [
  "download_bps",
  "upload_bps",
  "latency_ms",
  "delay_ms",
  "jitter_ms",
  "packet_loss_percent",
] as const satisfies readonly (keyof Given)[];

function fromPreset(name: string, given: Given, at: string): Profile {
  const found = PRESETS.find((known) => known.name.toLowerCase() === name.trim().toLowerCase());
  if (found === undefined) {
    const names = PRESETS.map((known) => JSON.stringify(known.name)).join(", ");
    throw validationError([{ path: "body/preset", message: `must be one of ${names}` }]);
  }
  const { hosts, loss_mode: lossMode, device_id: _device, ...others } = given;
  const [extra] = Object.entries(others).flatMap(([field, value]) => (value === undefined ? [] : [field]));
  if (extra !== undefined) {
    throw validationError([{ path: `${at}/${extra}`, message: "cannot be combined with preset, which sets it" }]);
  }
  return { ...found, hosts: hosts ?? [], lossMode: lossMode ?? found.lossMode };
}

function checkGiven(given: Given, at: string): void {
  const issues = profileIssues(given);
  if (issues.length > 0) {
    throw validationError(issues.map(({ path, message }) => ({ path: path.replace(/^\/profile/, at), message })));
  }
}

/** Checks beyond the schema; paths point into the throttle. */
function profileIssues(given: Given): { readonly path: string; readonly message: string }[] {
  const issues = (given.hosts ?? []).flatMap((host, index) => {
    const problem = validateHostPattern(host);
    return problem === undefined ? [] : [{ path: `/profile/hosts/${index}`, message: problem.replace(/\.$/, "") }];
  });
  const { latency_ms: latency, delay_ms: delay } = given;
  if (latency !== undefined && delay !== undefined && latency !== delay) {
    issues.push({ path: "/profile/delay_ms", message: "differs from latency_ms, which means the same" });
  }
  return issues;
}

/** The inverse of {@link showProfile}. */
function readProfile(profile: ThrottleProfile): Profile {
  return written(profile);
}

function written(given: Given): Profile {
  return {
    name: given.name?.trim() ?? "Custom",
    downloadBytesPerSecond: given.download_bps ?? 0,
    uploadBytesPerSecond: given.upload_bps ?? 0,
    latencyMs: given.latency_ms ?? given.delay_ms ?? 0,
    jitterMs: given.jitter_ms ?? 0,
    lossPercent: given.packet_loss_percent ?? 0,
    lossMode: given.loss_mode ?? "reset",
    hosts: given.hosts ?? [],
  };
}
