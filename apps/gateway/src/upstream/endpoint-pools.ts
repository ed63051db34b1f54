// Tested by ../../test/pipeline.test.ts
import { readFileSync } from "node:fs";
import { createSecureContext, type SecureContext } from "node:tls";
import type { Upstream } from "@headworks/gateway-contract";
import type { DeadlineSweep } from "@headworks/sockets";
import { Http1Pool, type PoolSettings } from "./http1-pool.ts";
import { Http2Pool } from "./http2-pool.ts";
import type { EndpointPool } from "./upstream-exchange.ts";
import type { EndpointState, UpstreamGroup } from "./upstream-group.ts";

/** Below the keep-alive times that servers usually have, so that they seldom close first. */
const IDLE_MS = 50_000;

interface KeptPool {
  readonly pool: EndpointPool;
  /** Everything the pool was made of, as text. */
  readonly made: string;
  readonly group: string;
}

/** The pools of all endpoints. A pool lives as long as nothing changes that it was made of. */
export class EndpointPools {
  readonly #deadlines: DeadlineSweep;
  readonly #pools = new Map<EndpointState, KeptPool>();
  readonly #contexts = new Map<string, { readonly made: string; readonly context: SecureContext | undefined }>();

  constructor(deadlines: DeadlineSweep) {
    this.#deadlines = deadlines;
  }

  poolOf(group: UpstreamGroup, endpoint: EndpointState): EndpointPool {
    return (this.#pools.get(endpoint) ?? this.#make(group, endpoint)).pool;
  }

  /** A generation was published: pools of endpoints that are gone, or that are reached in another way now, retire. */
  published(groups: readonly UpstreamGroup[]): void {
    this.#contexts.clear();
    const byName = new Map(groups.map((group) => [group.name, group]));
    for (const [endpoint, kept] of this.#pools) {
      const group = byName.get(kept.group);
      const stays = group !== undefined && group.endpoints.includes(endpoint);
      if (stays && this.#describe(group.document) === kept.made) continue;
      this.#pools.delete(endpoint);
      kept.pool.retire();
    }
  }

  /** Open connections to an endpoint. */
  openConnections(endpoint: EndpointState): number {
    return this.#pools.get(endpoint)?.pool.openConnections ?? 0;
  }

  stop(): void {
    for (const { pool } of this.#pools.values()) pool.retire();
    this.#pools.clear();
  }

  #make(group: UpstreamGroup, endpoint: EndpointState): KeptPool {
    const { document } = group;
    const settings = this.#settings(document, endpoint);
    const isHttp2 = document.protocol === "http2" || document.protocol === "h2c";
    const kept = {
      pool: isHttp2 ? new Http2Pool(settings) : new Http1Pool(settings),
      made: this.#describe(document),
      group: group.name,
    };
    this.#pools.set(endpoint, kept);
    return kept;
  }

  #settings(document: Upstream, endpoint: EndpointState): PoolSettings {
    const isSecure = document.protocol === "https" || document.protocol === "http2";
    return {
      address: endpoint.address,
      port: endpoint.port,
      authority: endpoint.key,
      tls: isSecure ? { context: this.#context(document), serverName: document.tls?.server_name } : undefined,
      connectMs: document.timeouts?.connect_ms ?? 5000,
      connectionCap: document.connection_cap ?? 64,
      maxPending: document.max_pending ?? Number.POSITIVE_INFINITY,
      happyEyeballsMs: document.timeouts?.happy_eyeballs_ms ?? 250,
      idleMs: IDLE_MS,
      deadlines: this.#deadlines,
    };
  }

  #describe(document: Upstream): string {
    const { protocol, tls, trusted_ca_file, connection_cap, max_pending, timeouts } = document;
    const files = this.#tlsFiles(document).map((path) => [path, contentOf(path)?.toString("base64")]);
    const { connect_ms, happy_eyeballs_ms } = timeouts ?? {};
    return JSON.stringify([
      protocol,
      tls?.server_name,
      trusted_ca_file,
      connection_cap,
      max_pending,
      connect_ms,
      happy_eyeballs_ms,
      files,
    ]);
  }

  #tlsFiles({ tls, trusted_ca_file }: Upstream): string[] {
    const named = [tls?.trusted_ca_file ?? trusted_ca_file, tls?.client_cert_file, tls?.client_key_file];
    return named.filter((path) => path !== undefined);
  }

  /** Undefined for the public roots and no certificate of our own. */
  #context(document: Upstream): SecureContext | undefined {
    const made = this.#describe(document);
    const known = this.#contexts.get(document.name);
    if (known?.made === made) return known.context;
    const { tls, trusted_ca_file } = document;
    const caFile = tls?.trusted_ca_file ?? trusted_ca_file;
    const ca = caFile === undefined ? undefined : contentOf(caFile);
    const cert = tls?.client_cert_file === undefined ? undefined : contentOf(tls.client_cert_file);
    const key = tls?.client_key_file === undefined ? undefined : contentOf(tls.client_key_file);
    const context =
      ca === undefined && cert === undefined
        ? undefined
        : createSecureContext({
            ...(ca === undefined ? {} : { ca }),
            ...(cert === undefined || key === undefined ? {} : { cert, key }),
          });
    this.#contexts.set(document.name, { made, context });
    return context;
  }
}

/** Undefined when the file cannot be read: it could when the document was checked. */
function contentOf(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}
