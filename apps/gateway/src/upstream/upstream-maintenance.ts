import type { Logger } from "pino";
import { ActiveHealth } from "./active-health.ts";
import type { EndpointPools } from "./endpoint-pools.ts";
import { NameDiscovery } from "./name-discovery.ts";
import type { UpstreamRegistry } from "./upstream-registry.ts";

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
