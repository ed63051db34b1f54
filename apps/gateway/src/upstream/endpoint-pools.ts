import { isIP } from "node:net";
import {
  DEFAULT_BUFFERED_BYTES,
  DEFAULT_CONNECTION_CAP,
  DEFAULT_MAX_CONNECTION_AGE_MS,
  DEFAULT_MAX_PENDING,
  DEFAULT_PENDING_MS,
  STALLED_FOR_EACH,
} from "@headworks/gateway-contract";
import { BufferBudget, type DeadlineSweep } from "@headworks/sockets";
import { EndpointConnections, endpointHost } from "./endpoint-connection.ts";
import { Http1Pool, type PoolSettings } from "./http1-pool.ts";
import { Http2Pool } from "./http2-pool.ts";
import type { EndpointPool } from "./upstream-exchange.ts";
import type { Endpoint } from "./endpoint.ts";
import type { UpstreamGroup } from "./upstream-registry.ts";

/** Below the usual keep-alive times of servers, so that they seldom close first. */
const IDLE_MS = 50_000;

interface KeptPool {
  readonly pool: EndpointPool;
  /** All inputs of the pool, as text. */
  readonly made: string;
  readonly group: string;
}

/** The pools of all endpoints. A pool lives as long as its inputs are unchanged. */
export class EndpointPools {
  readonly connections = new EndpointConnections();
  /** Memory for bodies buffered in either direction. */
  readonly buffers = new BufferBudget(DEFAULT_BUFFERED_BYTES);
  readonly #deadlines: DeadlineSweep;
  readonly #onDefect: (error: unknown) => void;
  readonly #pools = new Map<Endpoint, KeptPool>();

  /** @param onDefect  called when an internal error ended a connection to an endpoint */
  constructor(deadlines: DeadlineSweep, onDefect: (error: unknown) => void) {
    this.#deadlines = deadlines;
    this.#onDefect = onDefect;
  }

  poolOf(group: UpstreamGroup, endpoint: Endpoint): EndpointPool {
    return (this.#pools.get(endpoint) ?? this.#make(group, endpoint)).pool;
  }

  /** A generation was published: files may have changed. */
  published(groups: readonly UpstreamGroup[]): void {
    this.connections.forget();
    this.endpointsChanged(groups);
  }

  /** Retires the pools of removed endpoints and of those whose connection options changed. */
  endpointsChanged(groups: readonly UpstreamGroup[]): void {
    const byName = new Map(groups.map((group) => [group.name, group]));
    const present = new Map(groups.map((group) => [group.name, new Set(group.endpoints)]));
    for (const [endpoint, kept] of this.#pools) {
      const group = byName.get(kept.group);
      const stays = group !== undefined && (present.get(group.name)?.has(endpoint) ?? false);
      if (stays && this.connections.describe(group.document) === kept.made) continue;
      this.#pools.delete(endpoint);
      kept.pool.retire();
    }
  }

  openConnections(endpoint: Endpoint): number {
    return this.#pools.get(endpoint)?.pool.openConnections ?? 0;
  }

  stop(): void {
    for (const { pool } of this.#pools.values()) pool.retire();
    this.#pools.clear();
  }

  #make(group: UpstreamGroup, endpoint: Endpoint): KeptPool {
    const { document } = group;
    const kept = {
      pool: this.#poolFor(group, endpoint),
      made: this.connections.describe(document),
      group: group.name,
    };
    this.#pools.set(endpoint, kept);
    return kept;
  }

  #poolFor(group: UpstreamGroup, endpoint: Endpoint): EndpointPool {
    const { document } = group;
    let settings: PoolSettings;
    try {
      settings = this.#settings(group, endpoint);
    } catch (error) {
      return unusablePool(error instanceof Error ? error.message : String(error));
    }
    const isHttp2 = document.protocol === "http2" || document.protocol === "h2c";
    return isHttp2 ? new Http2Pool(settings) : new Http1Pool(settings);
  }

  #settings({ document, queueCounts }: UpstreamGroup, endpoint: Endpoint): PoolSettings {
    const connectionCap = document.connection_cap ?? DEFAULT_CONNECTION_CAP;
    return {
      ...this.connections.optionsOf(document, endpoint),
      authority: endpointHost(document, endpoint),
      connectionCap,
      stalledCap: document.stalled_connection_cap ?? connectionCap * STALLED_FOR_EACH,
      maxPending: document.max_pending ?? DEFAULT_MAX_PENDING,
      pendingMs: document.pending_timeout_ms ?? DEFAULT_PENDING_MS,
      counts: queueCounts,
      idleMs: IDLE_MS,
      maxAgeMs: maxConnectionAgeMs(document, endpoint.address),
      deadlines: this.#deadlines,
      onDefect: this.#onDefect,
    };
  }
}

function maxConnectionAgeMs(document: UpstreamGroup["document"], address: string): number {
  const isNamed = isIP(address.replace(/^\[|\]$/g, "")) === 0;
  const ageMs = document.max_connection_age_ms ?? (isNamed ? DEFAULT_MAX_CONNECTION_AGE_MS : 0);
  return ageMs === 0 ? Number.POSITIVE_INFINITY : ageMs;
}

/** Replaces a pool whose files cannot be used. */
function unusablePool(detail: string): EndpointPool {
  return {
    acquire: (waiter) => {
      waiter.onUnavailable("misconfigured", detail);
      return undefined;
    },
    retire: () => undefined,
    openConnections: 0,
  };
}
