import type { RecordWithTtl, SrvRecord } from "node:dns";
import { Resolver } from "node:dns/promises";
import type { Logger } from "pino";
import type { Upstream } from "@headworks/gateway-contract";
import { ActiveHealth } from "./active-health.ts";
import type { EndpointPools } from "./endpoint-pools.ts";
import { endpointKey } from "./endpoint.ts";
import type { ListedEndpoint, UpstreamRegistry } from "./upstream-registry.ts";

type Discovery = NonNullable<Upstream["dns_discovery"]>;

interface DiscoveredGroup {
  readonly document: Upstream;
  discovered(listed: readonly ListedEndpoint[]): void;
}

/** The used part of node's resolver. */
export interface NameResolver {
  resolve4(name: string, options: { readonly ttl: true }): Promise<RecordWithTtl[]>;
  resolve6(name: string, options: { readonly ttl: true }): Promise<RecordWithTtl[]>;
  resolveSrv(name: string): Promise<SrvRecord[]>;
}

interface DiscoveryParts {
  readonly log: Logger;
  /** Endpoints of an upstream changed. */
  readonly changed: () => void;
  readonly resolver?: NameResolver;
}

/** More records than this are taken for a mistake. */
const MAX_ENDPOINTS = 1000;
const DEFAULT_REFRESH_S = 30;
/** Random variation of the interval, so that gateways do not query all at once. */
const JITTER_SHARE = 0.1;

/** Resolves endpoints of upstreams with `dns_discovery` periodically. */
export class NameDiscovery {
  readonly #parts: Required<DiscoveryParts>;
  readonly #lookups = new Map<DiscoveredGroup, NameLookup>();

  constructor(parts: DiscoveryParts) {
    this.#parts = { resolver: new Resolver({ timeout: 2000, tries: 2 }), ...parts };
  }

  /** Resolves the names of these upstreams only; unchanged lookups continue. */
  follow(groups: readonly DiscoveredGroup[]): void {
    for (const [group, lookup] of this.#lookups) {
      const { dns_discovery: discovery } = group.document;
      if (groups.includes(group) && JSON.stringify(discovery) === JSON.stringify(lookup.discovery)) continue;
      lookup.stop();
      this.#lookups.delete(group);
    }
    for (const group of groups) {
      const { dns_discovery: discovery } = group.document;
      if (discovery === undefined || this.#lookups.has(group)) continue;
      const lookup = new NameLookup(group, discovery, this.#parts);
      this.#lookups.set(group, lookup);
      lookup.start();
    }
  }

  /** Whether each discovered upstream has endpoints. */
  get hasFoundAll(): boolean {
    return [...this.#lookups.values()].every(({ hasEndpoints }) => hasEndpoints);
  }

  stop(): void {
    this.follow([]);
  }
}

class NameLookup {
  readonly discovery: Discovery;
  readonly #group: DiscoveredGroup;
  readonly #parts: Required<DiscoveryParts>;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  #found = "";

  constructor(group: DiscoveredGroup, discovery: Discovery, parts: Required<DiscoveryParts>) {
    this.discovery = discovery;
    this.#group = group;
    this.#parts = parts;
  }

  /** Some were found, or the document lists some. */
  get hasEndpoints(): boolean {
    return (this.#found !== "" && this.#found !== "[]") || (this.#group.document.endpoints?.length ?? 0) > 0;
  }

  start(): void {
    void this.#look();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { min_endpoints: min = 1, fail_open: failOpen = true, refresh_interval_s: refreshS } = this.discovery;
    let why: string | undefined;
    let pauseS = refreshS ?? DEFAULT_REFRESH_S;
    try {
      const { found, ttlS } = await findEndpoints(this.discovery, this.#parts.resolver);
      if (this.#isStopped) return;
      pauseS = Math.min(pauseS, Math.max(1, ttlS));
      if (found.length >= min) this.#take(found);
      else why = `${found.length} endpoints were found, at least ${min} are needed`;
    } catch (error) {
      if (this.#isStopped) return;
      why = error instanceof Error ? error.message : String(error);
    }
    if (why !== undefined) {
      const { name } = this.#group.document;
      const { hostname } = this.discovery;
      this.#parts.log.warn({ code: "name_discovery_failed", upstream: name, hostname, why }, "No endpoints were found");
      if (!failOpen) this.#take([]);
    }
    const pauseMs = pauseS * 1000 * (1 + Math.random() * JITTER_SHARE);
    this.#timer = setTimeout(() => void this.#look(), pauseMs).unref();
  }

  #take(found: readonly ListedEndpoint[]): void {
    const text = JSON.stringify(found);
    if (text === this.#found) return;
    this.#found = text;
    this.#group.discovered(found);
    this.#parts.changed();
  }
}

interface FoundEndpoints {
  readonly found: readonly ListedEndpoint[];
  /** TTL in seconds; the resolver reports it for addresses only. */
  readonly ttlS: number;
}

async function findEndpoints(discovery: Discovery, resolver: NameResolver): Promise<FoundEndpoints> {
  const { hostname, port, record_type: type = "A" } = discovery;
  if (type === "SRV") {
    const found = sortedByKey(bestRecords(await resolver.resolveSrv(hostname)));
    return { found, ttlS: Number.POSITIVE_INFINITY };
  }
  const options = { ttl: true } as const;
  const records =
    type === "A" ? await resolver.resolve4(hostname, options) : await resolver.resolve6(hostname, options);
  const found = sortedByKey(records.map(({ address }) => ({ address, port })));
  return { found, ttlS: Math.min(...records.map(({ ttl }) => ttl)) };
}

/** In the order of their keys, so that another order of records changes nothing. */
function sortedByKey(found: readonly ListedEndpoint[]): ListedEndpoint[] {
  const keyed = found.map((endpoint) => ({ endpoint, key: endpointKey(endpoint.address, endpoint.port) }));
  keyed.sort((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)));
  return keyed.slice(0, MAX_ENDPOINTS).map(({ endpoint }) => endpoint);
}

/** Records of the lowest priority value (RFC 2782); a weight of 0 is the smallest. */
function bestRecords(records: readonly SrvRecord[]): ListedEndpoint[] {
  const best = records.reduce((lowest, { priority }) => Math.min(lowest, priority), Number.POSITIVE_INFINITY);
  return records
    .filter(({ priority }) => priority === best)
    .map(({ name, port, weight }) => ({ address: name, port, weight: Math.max(1, weight) }));
}

/** Background work of upstreams: name discovery and active health. */
export class UpstreamMaintenance {
  readonly #upstreams: UpstreamRegistry;
  readonly #health: ActiveHealth;
  readonly #names: NameDiscovery;

  constructor(parts: { readonly upstreams: UpstreamRegistry; readonly pools: EndpointPools; readonly log: Logger }) {
    const { upstreams, pools, log } = parts;
    this.#upstreams = upstreams;
    this.#health = new ActiveHealth(pools.connections);
    this.#names = new NameDiscovery({
      log,
      changed: () => {
        pools.endpointsChanged(upstreams.all);
        this.#health.follow(upstreams.all);
      },
    });
  }

  /** Each upstream has listed endpoints, or found some. */
  get hasEndpoints(): boolean {
    return this.#names.hasFoundAll;
  }

  /** The upstreams of another generation apply now. */
  published(): void {
    this.#names.follow(this.#upstreams.all);
    this.#health.follow(this.#upstreams.all);
  }

  stop(): void {
    this.#names.stop();
    this.#health.stop();
  }
}
