import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import {
  DEFAULT_BUFFERED_BYTES,
  DEFAULT_CONNECTION_CAP,
  DEFAULT_MAX_CONNECTION_AGE_MS,
  DEFAULT_MAX_PENDING,
  DEFAULT_PENDING_MS,
  STALLED_FOR_EACH,
  type Upstream,
} from "@headworks/gateway-contract";
import { BufferBudget, type DeadlineSweep } from "@headworks/sockets";
import type { EndpointConnectionOptions } from "./endpoint-connection.ts";
import { Http1Pool, type PoolSettings } from "./http1-pool.ts";
import { Http2Pool } from "./http2-pool.ts";
import type { EndpointPool } from "./upstream-exchange.ts";
import type { EndpointState, UpstreamGroup } from "./upstream-group.ts";
import { endpointHost, tlsName } from "./upstream-host.ts";

/** Connection options of endpoints. TLS files are read once per generation, not per endpoint. */
export class EndpointConnections {
  readonly #described = new Map<Upstream, string>();
  readonly #contexts = new Map<string, { readonly made: string; readonly context: SecureContext | undefined }>();

  /** A generation was published: files may have changed. */
  forget(): void {
    this.#described.clear();
    this.#contexts.clear();
  }

  /** Throws the error of the system or of OpenSSL if files cannot be used: there is no fallback to other trust. */
  optionsOf(
    document: Upstream,
    endpoint: { readonly address: string; readonly port: number },
  ): EndpointConnectionOptions {
    const isSecure = document.protocol === "https" || document.protocol === "http2";
    return {
      address: endpoint.address,
      port: endpoint.port,
      tls: isSecure ? { context: this.#context(document), serverName: tlsName(document, endpoint.address) } : undefined,
      connectMs: document.timeouts?.connect_ms ?? 5000,
      happyEyeballsMs: document.timeouts?.happy_eyeballs_ms ?? 250,
    };
  }

  /** All inputs of connections, as text. */
  describe(document: Upstream): string {
    let described = this.#described.get(document);
    if (described === undefined) this.#described.set(document, (described = describe(document)));
    return described;
  }

  /** Undefined for the public roots without a client certificate. */
  #context(document: Upstream): SecureContext | undefined {
    const made = this.describe(document);
    const known = this.#contexts.get(document.name);
    if (known?.made === made) return known.context;
    const context = secureContext(document);
    this.#contexts.set(document.name, { made, context });
    return context;
  }
}

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
  readonly #pools = new Map<EndpointState, KeptPool>();

  /** @param onDefect  called when an internal error ended a connection to an endpoint */
  constructor(deadlines: DeadlineSweep, onDefect: (error: unknown) => void) {
    this.#deadlines = deadlines;
    this.#onDefect = onDefect;
  }

  poolOf(group: UpstreamGroup, endpoint: EndpointState): EndpointPool {
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

  openConnections(endpoint: EndpointState): number {
    return this.#pools.get(endpoint)?.pool.openConnections ?? 0;
  }

  stop(): void {
    for (const { pool } of this.#pools.values()) pool.retire();
    this.#pools.clear();
  }

  #make(group: UpstreamGroup, endpoint: EndpointState): KeptPool {
    const { document } = group;
    const kept = {
      pool: this.#poolFor(group, endpoint),
      made: this.connections.describe(document),
      group: group.name,
    };
    this.#pools.set(endpoint, kept);
    return kept;
  }

  #poolFor(group: UpstreamGroup, endpoint: EndpointState): EndpointPool {
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

  #settings({ document, queueCounts }: UpstreamGroup, endpoint: EndpointState): PoolSettings {
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

function secureContext({ tls, trusted_ca_file: caFile }: Upstream): SecureContext | undefined {
  const ca = contentOf(tls?.trusted_ca_file ?? caFile);
  const cert = contentOf(tls?.client_cert_file);
  const key = contentOf(tls?.client_key_file);
  if (ca === undefined && cert === undefined) return undefined;
  // A context silently accepts a bundle without any certificate, and then trusts nothing.
  if (ca !== undefined) new X509Certificate(ca);
  return createSecureContext({
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
  });
}

function contentOf(path: string | undefined): Buffer | undefined {
  return path === undefined ? undefined : readFileSync(path);
}

function describe(document: Upstream): string {
  const { protocol, tls, trusted_ca_file: caFile, connection_cap: cap, max_pending: maxPending, timeouts } = document;
  const { upstream_host: host, dns_discovery: discovery, endpoints } = document;
  // Listed endpoints have names of their own.
  const listed = discovery === undefined ? undefined : endpoints?.map(({ address }) => address);
  const files = [tls?.trusted_ca_file ?? caFile, tls?.client_cert_file, tls?.client_key_file].map((path) => {
    try {
      return [path, contentOf(path)?.toString("base64")];
    } catch {
      return [path, "unreadable"];
    }
  });
  const { connect_ms: connectMs, happy_eyeballs_ms: eyeballsMs } = timeouts ?? {};
  const {
    stalled_connection_cap: stalledCap,
    pending_timeout_ms: pendingMs,
    max_connection_age_ms: maxAgeMs,
  } = document;
  const bounds = [cap, stalledCap, maxPending, pendingMs, maxAgeMs, connectMs, eyeballsMs];
  return JSON.stringify([protocol, tls?.server_name, host, discovery?.hostname, listed, files, ...bounds]);
}
