import type { Policy, RateLimit } from "@headworks/gateway-contract";
import { formatAddress, parseNetwork } from "@headworks/host-patterns";
import type { RequestContext } from "#request/context.ts";

/** Tolerance for rounding errors of accumulated intervals. */
const ROUNDING = 1e-7;
const SHARDS = 16;

/** Maximum keys per shard; bounds the cost of an eviction. */
export const SHARD_KEYS = 4096;

/**
 * State of a rule's keys: per window the time at which the burst is fully replenished. Bounded, since clients choose
 * keys: a full shard first drops replenished keys, which lose no state, then the half closest to it.
 */
export class KeyBuckets {
  readonly #windows: number;
  readonly #shards = Array.from({ length: SHARDS }, () => new Map<string, number[]>());
  #evictions = 0;

  constructor(windows: number) {
    this.#windows = windows;
  }

  /** Number of keys evicted before they were replenished. */
  get evictions(): number {
    return this.#evictions;
  }

  get size(): number {
    return this.#shards.reduce((sum, shard) => sum + shard.size, 0);
  }

  /** The mutable state of a key. */
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
    // Otherwise almost every new key would trigger another scan.
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

/** State of a window after a charge. */
export interface RuleState extends WindowState {
  /** Burst size. */
  readonly limit: number;
}

export class RateRule {
  readonly policy: string;
  /** Name of the rule or its policy, for reports. */
  readonly label: string;
  /** Equal in all processes and generations with an unchanged rule. */
  readonly identity: string;
  readonly isDryRun: boolean;
  readonly buckets: KeyBuckets;
  /** The counter key of a request. */
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
   * Charges a key, shortest window first; stops at the first refusal and leaves preceding windows charged. Returns the
   * refusing window, or the one with the fewest remaining requests.
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

/** Key of the properties that must be unchanged for a rule to keep its counters. */
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

/** Usual network size of a customer: limits per address would not stop a client with 2^64 of them. */
const DEFAULT_IPV6_PREFIX = 64;

function prefixOf({ ipv6_prefix_length: bits = DEFAULT_IPV6_PREFIX }: RateLimit): number {
  return bits;
}

/** An IPv4 address, or the network of an IPv6 address with this prefix length. */
function countedAddress(address: string, ipv6Bits: number): string {
  if (!address.includes(":") || ipv6Bits === 128) return address;
  const network = parseNetwork(`${address}/${ipv6Bits}`);
  return network === undefined ? address : formatAddress(network);
}

/** Document names contain no line breaks, so joined keys are unambiguous. */
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

/** A window with a burst of `burst` requests, replenished by one per `intervalMs`. */
interface RateWindow {
  readonly burst: number;
  readonly intervalMs: number;
}

/** State of a window after a charge. */
interface WindowState {
  /** Time until the next request would pass; 0 if this one did. */
  readonly waitMs: number;
  /** Requests that would pass now. */
  readonly remaining: number;
  /** Time at which the burst is fully replenished without further requests. */
  readonly fullAtMs: number;
}

/**
 * Generic cell rate algorithm. The only state per key is `fullAtMs`, the time at which the burst is fully replenished,
 * advanced by one interval per admitted request. Unknown keys are full.
 */
export function chargeWindow(window: RateWindow, fullAtMs: number, nowMs: number): WindowState {
  const { burst, intervalMs } = window;
  const charged = Math.max(fullAtMs, nowMs) + intervalMs;
  // In intervals, so that rounding errors are independent of the rate.
  const left = burst - (charged - nowMs) / intervalMs;
  if (left < -ROUNDING) return { waitMs: -left * intervalMs, remaining: 0, fullAtMs };
  return { waitMs: 0, remaining: Math.floor(left + ROUNDING), fullAtMs: charged };
}
