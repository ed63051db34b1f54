import type { Policy, RateLimit } from "@headworks/gateway-contract";
import { formatAddress, parseNetwork } from "@headworks/host-patterns";
import type { RequestContext } from "#request/context.ts";

/** Sums of intervals are not exact in binary fractions; a request is not refused for so small a part of one. */
const ROUNDING = 1e-7;

const SHARDS = 16;

/** Keys of one shard: what making room costs is bounded by it. */
export const SHARD_KEYS = 4096;

/**
 * What one rule remembers of its keys: for each window the moment its burst is whole again. Bounded, since clients choose
 * the keys: when a shard is full, keys whose bursts are whole go first, which loses nothing, then the half that is
 * nearest to it.
 */
export class KeyBuckets {
  readonly #windows: number;
  readonly #shards = Array.from({ length: SHARDS }, () => new Map<string, number[]>());
  #evictions = 0;

  constructor(windows: number) {
    this.#windows = windows;
  }

  /** Keys that were forgotten although their bursts were not whole. */
  get evictions(): number {
    return this.#evictions;
  }

  get size(): number {
    return this.#shards.reduce((sum, shard) => sum + shard.size, 0);
  }

  /** The moments of a key, to be changed in place. */
  of(key: string, nowMs: number): number[] {
    const shard = this.#shards[shardOf(key)];
    const known = shard?.get(key);
    if (known !== undefined) return known;
    const fresh = Array.from({ length: this.#windows }, () => 0);
    if (shard === undefined) return fresh;
    if (shard.size >= SHARD_KEYS) this.#makeRoom(shard, nowMs);
    shard.set(key, fresh);
    return fresh;
  }

  #makeRoom(shard: Map<string, number[]>, nowMs: number): void {
    const busy = new Float64Array(shard.size);
    let count = 0;
    for (const [key, moments] of shard) {
      const fullAtMs = latest(moments);
      if (fullAtMs <= nowMs) shard.delete(key);
      else busy[count++] = fullAtMs;
    }
    // With a few idle ones gone, the next new key would have to look at all of them again.
    if (count <= SHARD_KEYS * 0.75) return;
    let excess = count - SHARD_KEYS / 2;
    this.#evictions += excess;
    const bar = busy.subarray(0, count).sort()[excess - 1] ?? 0;
    for (const [key, moments] of shard) {
      if (latest(moments) > bar) continue;
      shard.delete(key);
      excess -= 1;
      if (excess === 0) break;
    }
  }
}

const PERIODS_MS = { s: 1000, minute: 60_000, hour: 3_600_000 } as const;

/** A window after a request was counted in it. */
export interface RuleState extends WindowState {
  /** Size of its burst. */
  readonly limit: number;
}

/** One rule of a policy with what it remembers. */
export class RateRule {
  readonly policy: string;
  /** For people: the name of the rule, or of its policy. */
  readonly label: string;
  /** The same in every process, and in every generation that has the rule unchanged. */
  readonly identity: string;
  readonly isDryRun: boolean;
  readonly buckets: KeyBuckets;
  /** What the counts of a request are kept under. */
  readonly keyOf: (request: RequestContext) => string;
  readonly #windows: readonly RateWindow[];

  constructor(policy: Policy, rule: RateLimit, buckets: KeyBuckets | undefined) {
    this.policy = policy.name;
    this.label = rule.name ?? policy.name;
    this.identity = ruleIdentity(policy, rule);
    this.isDryRun = policy.dry_run === true;
    this.#windows = windowsOf(rule);
    this.buckets = buckets ?? new KeyBuckets(this.#windows.length);
    this.keyOf = keyOf(rule);
  }

  /**
   * Counts a request under its key, in the shortest window first; what refuses it ends that, and the windows before stay charged.
   * Gives the window that refused, or the one with the least left.
   */
  charge(key: string, nowMs: number): RuleState {
    const moments = this.buckets.of(key, nowMs);
    let tightest: WindowState | undefined;
    let limit = 0;
    for (let at = 0; at < this.#windows.length; at += 1) {
      const window = this.#windows[at];
      if (window === undefined) break;
      const state = chargeWindow(window, moments[at] ?? 0, nowMs);
      moments[at] = state.fullAtMs;
      const isRefused = state.waitMs > 0;
      if (tightest === undefined || isRefused || state.remaining < tightest.remaining) {
        tightest = state;
        limit = window.burst;
      }
      if (isRefused) break;
    }
    if (tightest === undefined) throw new Error("A rule has at least one window");
    return { limit, waitMs: tightest.waitMs, remaining: tightest.remaining, fullAtMs: tightest.fullAtMs };
  }
}

/** What must be the same in two generations for a rule to go on counting where it stood. */
export function ruleIdentity(policy: Policy, rule: RateLimit): string {
  return JSON.stringify([policy.name, rule.name, rule.selector, windowsOf(rule), prefixOf(rule)]);
}

function windowsOf({ requests_per: requestsPer, burst }: RateLimit): RateWindow[] {
  const windows: RateWindow[] = [];
  for (const period of ["s", "minute", "hour"] as const) {
    const count = requestsPer[period];
    if (count !== undefined) windows.push({ burst: burst ?? count, intervalMs: PERIODS_MS[period] / count });
  }
  return windows;
}

type Selector = RateLimit["selector"][number];

/** Providers give each customer such a network: limits of single addresses would not hold a client that has 2^64 of them. */
const DEFAULT_IPV6_PREFIX = 64;

function prefixOf({ ipv6_prefix_length: bits = DEFAULT_IPV6_PREFIX }: RateLimit): number {
  return bits;
}

/** An IPv4 address, or the network of an IPv6 address with so many bits. */
function countedAddress(address: string, ipv6Bits: number): string {
  if (!address.includes(":") || ipv6Bits === 128) return address;
  const network = parseNetwork(`${address}/${ipv6Bits}`);
  return network === undefined ? address : formatAddress(network);
}

/** Names of the document have no line ends, so that joined keys of different parts never meet. */
function partOf(selector: Selector, ipv6Bits: number): (request: RequestContext) => string {
  switch (selector) {
    case "ip":
      return ({ clientAddress }) => countedAddress(clientAddress, ipv6Bits);
    case "credential":
      return ({ consumer, clientAddress }) =>
        consumer === undefined ? `ip\n${countedAddress(clientAddress, ipv6Bits)}` : `consumer\n${consumer.name}`;
    case "route":
      return ({ route }) => (route === undefined ? "unrouted" : `route\n${route.name}`);
  }
}

function keyOf(rule: RateLimit): (request: RequestContext) => string {
  const [first, ...rest] = rule.selector.map((selector) => partOf(selector, prefixOf(rule)));
  if (first === undefined) return () => "";
  if (rest.length === 0) return first;
  return (request) => rest.reduce((key, part) => `${key}\n${part(request)}`, first(request));
}

function latest(moments: readonly number[]): number {
  let latestMs = 0;
  for (const moment of moments) if (moment > latestMs) latestMs = moment;
  return latestMs;
}

function shardOf(key: string): number {
  let hash = 0;
  for (let at = 0; at < key.length; at += 1) hash = (Math.imul(hash, 31) + key.charCodeAt(at)) | 0;
  return (hash ^ (hash >>> 16)) & (SHARDS - 1);
}

/** One window of a rule: `burst` requests at once, then one each `intervalMs`. */
interface RateWindow {
  readonly burst: number;
  readonly intervalMs: number;
}

/** How a window stands after it was asked. */
interface WindowState {
  /** How long until one more request would pass; 0 when this one did. */
  readonly waitMs: number;
  /** Whole requests that would pass now. */
  readonly remaining: number;
  /** When the burst is whole again if nothing comes. */
  readonly fullAtMs: number;
}

/**
 * Generic cell rate algorithm. `fullAtMs` is all that is remembered of a key: the moment at which its burst is whole
 * again, moved on by one interval for each request that passes. A key that was never seen is full since ever.
 */
export function chargeWindow(window: RateWindow, fullAtMs: number, nowMs: number): WindowState {
  const { burst, intervalMs } = window;
  const charged = Math.max(fullAtMs, nowMs) + intervalMs;
  // In intervals, so that rounding weighs the same for every rate.
  const left = burst - (charged - nowMs) / intervalMs;
  if (left < -ROUNDING) return { waitMs: -left * intervalMs, remaining: 0, fullAtMs };
  return { waitMs: 0, remaining: Math.floor(left + ROUNDING), fullAtMs: charged };
}
