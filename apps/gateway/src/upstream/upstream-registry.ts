import type { EventKind, EventPayloads, Upstream } from "@headworks/gateway-contract";
import { type Balancer, createBalancer } from "./balancer.ts";
import { breakerRules, CircuitBreaker } from "./circuit-breaker.ts";
import { Endpoint, endpointKey, type EndpointOwner, healthRules } from "./endpoint.ts";
import type { Admission, EndpointState, PickKey, UpstreamGroup } from "./upstream-group.ts";

const WINDOW_MS = 10_000;

const SLOTS = 10;

/** Lets the first failures after a quiet period be retried. */
const FREE_RETRIES = 3;

/**
 * Allows retries up to a share of the requests of the last ten seconds, so that a failing upstream is not overloaded.
 */
export class RetryBudget {
  #percent: number;
  readonly #nowMs: () => number;
  readonly #requests = new Float64Array(SLOTS);
  readonly #retries = new Float64Array(SLOTS);
  #slot = 0;

  constructor(percent: number, nowMs: () => number) {
    this.#percent = percent;
    this.#nowMs = nowMs;
    this.#slot = this.#present();
  }

  adopt(percent: number): void {
    this.#percent = percent;
  }

  countRequest(): void {
    this.#roll();
    this.#requests[this.#slot % SLOTS] = (this.#requests[this.#slot % SLOTS] ?? 0) + 1;
  }

  /** Takes a retry; false when the budget is spent. */
  spend(): boolean {
    this.#roll();
    const requests = sum(this.#requests);
    const retries = sum(this.#retries);
    if (retries + 1 > Math.max(FREE_RETRIES, (requests * this.#percent) / 100)) return false;
    this.#retries[this.#slot % SLOTS] = (this.#retries[this.#slot % SLOTS] ?? 0) + 1;
    return true;
  }

  #present(): number {
    return Math.floor(this.#nowMs() / (WINDOW_MS / SLOTS));
  }

  #roll(): void {
    const present = this.#present();
    for (let gone = Math.max(this.#slot + 1, present - SLOTS + 1); gone <= present; gone++) {
      this.#requests[gone % SLOTS] = 0;
      this.#retries[gone % SLOTS] = 0;
    }
    this.#slot = present;
  }
}

export interface UpstreamHost {
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  emit<K extends EventKind>(kind: K, payload: EventPayloads[K]): void;
}

/** An endpoint as listed by the document or found by name discovery. */
export interface ListedEndpoint {
  readonly address: string;
  readonly port: number;
  readonly weight?: number;
  readonly drain?: boolean;
}

/** No breaker ever has this epoch, so that attempts admitted without a breaker are ignored by a later one. */
const ALWAYS: Admission = Object.freeze({ epoch: -1 });
const DEFAULT_BUDGET_PERCENT = 10;

/** One upstream across generations: settings are adopted, state is kept. */
export class LiveUpstream implements UpstreamGroup {
  readonly name: string;
  document: Upstream;
  endpoints: readonly Endpoint[] = [];
  /** Picks that ignored health because no endpoint was in rotation. */
  failOpenPicks = 0;
  retries = 0;
  hedges = 0;
  readonly queueCounts = { saturated: 0, timedOut: 0, evicted: 0 };
  readonly #host: UpstreamHost;
  readonly #owner: EndpointOwner;
  readonly #budget: RetryBudget;
  #breaker: CircuitBreaker | undefined;
  #nextEpoch = 0;
  #isRetired = false;
  #discovered: readonly ListedEndpoint[] = [];
  #balancer: Balancer = NOTHING_TO_BALANCE;
  #balanced = "";

  constructor(document: Upstream, host: UpstreamHost) {
    this.name = document.name;
    this.document = document;
    this.#host = host;
    this.#budget = new RetryBudget(DEFAULT_BUDGET_PERCENT, host.nowMs);
    this.#owner = {
      nowMs: host.nowMs,
      ejected: (endpoint) => this.#tell("endpoint_ejected", endpoint),
      recovered: (endpoint) => this.#tell("endpoint_recovered", endpoint),
      mayEject: () => this.#mayEject(),
    };
    this.adopt(document);
  }

  get breaker(): CircuitBreaker | undefined {
    return this.#breaker;
  }

  adopt(document: Upstream): void {
    if (!isSameDiscovery(document, this.document)) this.#discovered = [];
    this.document = document;
    this.#budget.adopt(document.retries?.budget_percent ?? DEFAULT_BUDGET_PERCENT);
    this.#setEndpoints();
    this.#adoptBreaker(document);
  }

  /** Sets the discovered endpoints, which are added to those of the document. */
  discovered(listed: readonly ListedEndpoint[]): void {
    this.#discovered = listed;
    this.#setEndpoints();
  }

  /** No generation has it any more. Its active requests finish without events. */
  retire(): void {
    this.#isRetired = true;
  }

  /** No event for a removed endpoint, which may still have active attempts. */
  #tell(kind: "endpoint_ejected" | "endpoint_recovered", endpoint: Endpoint): void {
    if (this.endpoints.includes(endpoint)) this.#emit(kind, { upstream: this.name, endpoint: endpoint.key });
  }

  #emit<K extends EventKind>(kind: K, payload: EventPayloads[K]): void {
    if (!this.#isRetired) this.#host.emit(kind, payload);
  }

  /** Known endpoints keep their state. */
  #setEndpoints(): void {
    const known = new Map(this.endpoints.map((endpoint) => [endpoint.key, endpoint]));
    const rules = this.document.health === undefined ? undefined : healthRules(this.document.health);
    const endpoints = new Map<string, Endpoint>();
    for (const { address, port, weight, drain } of [...(this.document.endpoints ?? []), ...this.#discovered]) {
      const key = endpointKey(address, port);
      if (endpoints.has(key)) continue;
      const endpoint = known.get(key) ?? new Endpoint(address, port, this.#owner);
      endpoint.weight = weight ?? 1;
      endpoint.adoptDrain(drain ?? false);
      endpoint.adopt(rules);
      endpoints.set(key, endpoint);
    }
    this.endpoints = [...endpoints.values()];
    this.#balance();
  }

  /** Rebuilt only if its inputs changed: a ring of many endpoints is expensive. */
  #balance(): void {
    const { load_balancer: balancer, slow_start_ms: slowStartMs } = this.document;
    const made = JSON.stringify([balancer, slowStartMs, this.endpoints.map(({ key, weight }) => [key, weight])]);
    const isSame = made === this.#balanced;
    this.#balanced = made;
    if (!isSame) this.#balancer = createBalancer(this.document, this.endpoints);
  }

  admit(): Admission {
    if (this.#breaker === undefined) return ALWAYS;
    const pass = this.#breaker.admit();
    return "epoch" in pass ? pass : { retryAfterS: Math.max(1, Math.ceil(pass.waitMs / 1000)) };
  }

  settle(epoch: number, ok: boolean | undefined): void {
    this.#breaker?.settle(epoch, ok);
  }

  pick(key: PickKey, tried: readonly EndpointState[]): Endpoint | undefined {
    const nowMs = this.#host.nowMs();
    const { endpoints } = this;
    const [only] = endpoints;
    if (endpoints.length === 1 && only !== undefined) {
      if (only.isDraining) return undefined;
      if (only.isAvailable(nowMs)) only.picked(nowMs);
      else this.failOpenPicks += 1;
      return only;
    }
    const untried = tried.length === 0 ? endpoints : endpoints.filter((endpoint) => !tried.includes(endpoint));
    const available = availableOf(untried, nowMs);
    const candidates = available.length > 0 ? available : this.#fallback(untried, nowMs);
    if (candidates.length === 0) return undefined;
    const picked = this.#balancer(candidates, key, nowMs);
    picked.picked(nowMs);
    return picked;
  }

  countRequest(): void {
    this.#budget.countRequest();
  }

  spendRetry(): boolean {
    if (!this.#budget.spend()) return false;
    this.retries += 1;
    return true;
  }

  spendHedge(): boolean {
    if (!this.#budget.spend()) return false;
    this.hedges += 1;
    return true;
  }

  /** No untried endpoint is in rotation: returns tried ones, and last, any endpoint (fail open). */
  #fallback(untried: readonly Endpoint[], nowMs: number): readonly Endpoint[] {
    const available = availableOf(this.endpoints, nowMs);
    if (available.length > 0) return available;
    const open = untried.filter(({ isDraining }) => !isDraining);
    const found = open.length > 0 ? open : this.endpoints.filter(({ isDraining }) => !isDraining);
    if (found.length > 0) this.failOpenPicks += 1;
    return found;
  }

  #mayEject(): boolean {
    const most = this.document.health?.max_ejected_percent ?? 100;
    if (most >= 100) return true;
    const ejected = this.endpoints.filter(({ health }) => health !== "healthy").length;
    return ((ejected + 1) / Math.max(1, this.endpoints.length)) * 100 <= most;
  }

  #stopBreaker(): void {
    this.#nextEpoch = (this.#breaker?.epoch ?? this.#nextEpoch) + 1;
    this.#breaker = undefined;
  }

  #adoptBreaker({ breaker }: Upstream): void {
    if (breaker === undefined) return this.#stopBreaker();
    const rules = breakerRules(breaker);
    if (this.#breaker !== undefined) return this.#breaker.adopt(rules);
    const upstream = this.name;
    this.#breaker = new CircuitBreaker(
      rules,
      {
        opened: (detail) => this.#emit("breaker_opened", { upstream, detail }),
        halfOpen: () => this.#emit("breaker_half_open", { upstream }),
        closed: () => this.#emit("breaker_closed", { upstream, detail: "half_open_probe_succeeded" }),
      },
      this.#host.nowMs,
      this.#nextEpoch,
    );
  }
}

const NOTHING_TO_BALANCE: Balancer = () => {
  throw new RangeError("There is no endpoint to choose");
};

function isSameDiscovery(a: Upstream, b: Upstream): boolean {
  return JSON.stringify(discoverySource(a)) === JSON.stringify(discoverySource(b));
}

function discoverySource({ dns_discovery: discovery }: Upstream): unknown {
  return [discovery?.hostname, discovery?.port, discovery?.record_type];
}

/** Returns `endpoints` itself if all are in rotation, so that the usual case copies nothing. */
function availableOf(endpoints: readonly Endpoint[], nowMs: number): readonly Endpoint[] {
  return endpoints.every((endpoint) => endpoint.isAvailable(nowMs))
    ? endpoints
    : endpoints.filter((endpoint) => endpoint.isAvailable(nowMs));
}

export class UpstreamRegistry {
  readonly #host: UpstreamHost;
  #groups = new Map<string, LiveUpstream>();
  /** Created for a candidate that may yet be refused. */
  #prepared = new Map<string, LiveUpstream>();

  constructor(host: UpstreamHost) {
    this.#host = host;
  }

  get all(): readonly LiveUpstream[] {
    return [...this.#groups.values()];
  }

  get(name: string): LiveUpstream | undefined {
    return this.#groups.get(name);
  }

  /** Creates what a candidate needs; running upstreams are unchanged. */
  prepare(document: Upstream): LiveUpstream {
    const known = this.#groups.get(document.name) ?? this.#prepared.get(document.name);
    if (known !== undefined) return known;
    const group = new LiveUpstream(document, this.#host);
    this.#prepared.set(document.name, group);
    return group;
  }

  /** A generation was published: upstreams adopt their settings, removed ones are dropped. */
  published(documents: readonly Upstream[]): void {
    const groups = new Map<string, LiveUpstream>();
    for (const document of documents) {
      const group = this.prepare(document);
      if (group.document !== document) group.adopt(document);
      groups.set(document.name, group);
    }
    for (const [name, group] of this.#groups) if (!groups.has(name)) group.retire();
    this.#groups = groups;
    this.#prepared = new Map();
  }
}

function sum(numbers: Float64Array): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}
