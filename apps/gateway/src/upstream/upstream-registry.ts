import { hash, randomBytes } from "node:crypto";
import type { EventKind, EventPayloads, Service, Upstream } from "@headworks/gateway-contract";
import { type Balancer, createBalancer, type PickKey } from "./balancer.ts";
import { breakerRules, CircuitBreaker } from "./circuit-breaker.ts";
import { compileUpstreamHost, type UpstreamHost } from "./endpoint-connection.ts";
import { Endpoint, endpointKey, type EndpointOwner, healthRules } from "./endpoint.ts";
import type { QueueCounts } from "./upstream-exchange.ts";

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

interface RegistryHost {
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  emit<K extends EventKind>(kind: K, payload: EventPayloads[K]): void;
}

/** A pass for one attempt, to be settled exactly once; or the breaker's refusal. */
type Admission = AttemptPass | { readonly retryAfterS: number };

interface AttemptPass {
  /** Ties the result to the state of the breaker at admission. */
  readonly epoch: number;
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

/**
 * One upstream: its endpoints, balancing, health, breaker and retry budget. Across generations settings are adopted and
 * state is kept.
 */
export class UpstreamGroup {
  readonly name: string;
  document: Upstream;
  endpoints: readonly Endpoint[] = [];
  /** Picks that ignored health because no endpoint was in rotation. */
  failOpenPicks = 0;
  retries = 0;
  hedges = 0;
  readonly queueCounts: QueueCounts = { saturated: 0, timedOut: 0, evicted: 0 };
  readonly #host: RegistryHost;
  readonly #owner: EndpointOwner;
  readonly #budget: RetryBudget;
  #breaker: CircuitBreaker | undefined;
  #nextEpoch = 0;
  #isRetired = false;
  #discovered: readonly ListedEndpoint[] = [];
  #balancer: Balancer = NOTHING_TO_BALANCE;
  #balanced = "";

  constructor(document: Upstream, host: RegistryHost) {
    this.name = document.name;
    this.document = document;
    this.#host = host;
    this.#budget = new RetryBudget(DEFAULT_BUDGET_PERCENT, host.nowMs);
    this.#owner = {
      nowMs: host.nowMs,
      ejected: (endpoint) => this.#publish("endpoint_ejected", endpoint),
      recovered: (endpoint) => this.#publish("endpoint_recovered", endpoint),
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
  #publish(kind: "endpoint_ejected" | "endpoint_recovered", endpoint: Endpoint): void {
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

  /** Consults the breaker; called before every attempt. */
  admit(): Admission {
    if (this.#breaker === undefined) return ALWAYS;
    const pass = this.#breaker.admit();
    return "epoch" in pass ? pass : { retryAfterS: Math.max(1, Math.ceil(pass.waitMs / 1000)) };
  }

  /** An admitted attempt ended: `ok` for a head below 500; undefined if it says nothing. */
  settle(epoch: number, ok: boolean | undefined): void {
    this.#breaker?.settle(epoch, ok);
  }

  /** An endpoint for an attempt, outside `tried` if possible; undefined if there is none at all. */
  pick(key: PickKey, tried: readonly Endpoint[]): Endpoint | undefined {
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

  /** Counts a first attempt for the retry budget. */
  countRequest(): void {
    this.#budget.countRequest();
  }

  /** Takes one retry from the budget; false when it is spent. */
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
    const max = this.document.health?.max_ejected_percent ?? 100;
    if (max >= 100) return true;
    const ejected = this.endpoints.filter(({ health }) => health !== "healthy").length;
    return ((ejected + 1) / Math.max(1, this.endpoints.length)) * 100 <= max;
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
  readonly #host: RegistryHost;
  #groups = new Map<string, UpstreamGroup>();
  /** Created for a candidate that may yet be refused. */
  #prepared = new Map<string, UpstreamGroup>();

  constructor(host: RegistryHost) {
    this.#host = host;
  }

  get all(): readonly UpstreamGroup[] {
    return [...this.#groups.values()];
  }

  get(name: string): UpstreamGroup | undefined {
    return this.#groups.get(name);
  }

  /** Creates what a candidate needs; running upstreams are unchanged. */
  prepare(document: Upstream): UpstreamGroup {
    const known = this.#groups.get(document.name) ?? this.#prepared.get(document.name);
    if (known !== undefined) return known;
    const group = new UpstreamGroup(document, this.#host);
    this.#prepared.set(document.name, group);
    return group;
  }

  /** A generation was published: upstreams adopt their settings, removed ones are dropped. */
  published(documents: readonly Upstream[]): void {
    const groups = new Map<string, UpstreamGroup>();
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

/** The upstream chosen for a request. */
export interface UpstreamChoice {
  readonly group: UpstreamGroup;
  readonly host: UpstreamHost;
  /** A cookie to set on the response, for stickiness. */
  readonly setCookie: string | undefined;
}

/** An upstream of the document with its state, which outlives generations. */
interface CompiledUpstream {
  readonly document: Upstream;
  readonly group: UpstreamGroup;
}

/** Inputs of a split. */
export interface SplitKey {
  readonly requestId: string;
  cookie(name: string): string | undefined;
}

const DEFAULT_TTL_S = 3600;

/**
 * Compiles the choice of an upstream for a request of the service. A split is a weighted hash of the sticky cookie if
 * the service has one, so that a client stays, else of the request id. Throws for an unknown upstream: validation
 * refuses such documents.
 */
export function compileService(
  service: Service,
  upstream: (name: string) => CompiledUpstream,
): (key: SplitKey) => UpstreamChoice {
  const destinationOf = (name: string): Pick<UpstreamChoice, "group" | "host"> => {
    const { document, group } = upstream(name);
    return { group, host: compileUpstreamHost(service.upstream_host ?? document.upstream_host) };
  };
  if (service.upstream !== undefined) {
    const choice = { ...destinationOf(service.upstream), setCookie: undefined };
    return () => choice;
  }
  const targets = (service.split?.targets ?? []).map(({ upstream: name, weight }) => ({
    destination: destinationOf(name),
    weight: weight ?? 1,
  }));
  const total = targets.reduce((sum, { weight }) => sum + weight, 0);
  const { sticky } = service;
  return (key) => {
    const sent = sticky === undefined ? undefined : key.cookie(sticky.cookie);
    const text = sent ?? (sticky === undefined ? key.requestId : randomBytes(12).toString("base64url"));
    const destination = weighted(targets, Math.floor(shareOf(text) * total));
    const setCookie =
      sticky === undefined || sent !== undefined
        ? undefined
        : `${sticky.cookie}=${text}; Path=/; Max-Age=${sticky.ttl_s ?? DEFAULT_TTL_S}; HttpOnly; SameSite=Lax`;
    return { ...destination, setCookie };
  };
}

function weighted(
  targets: readonly { readonly destination: Pick<UpstreamChoice, "group" | "host">; readonly weight: number }[],
  share: number,
): Pick<UpstreamChoice, "group" | "host"> {
  let behind = share;
  for (const { destination, weight } of targets) {
    if (behind < weight) return destination;
    behind -= weight;
  }
  throw new RangeError("A split needs a target with a weight");
}

/** A stable hash of the text in [0, 1). */
function shareOf(text: string): number {
  return Number.parseInt(hash("sha256", text).slice(0, 8), 16) / 4_294_967_296;
}

/** State of an endpoint as plain data. */
interface EndpointSnapshot {
  readonly key: string;
  readonly health: "healthy" | "ejected" | "half_open";
  readonly isDraining: boolean;
  readonly weight: number;
  readonly inFlight: number;
  readonly connections: number;
}

/** State of an upstream as plain data. */
export interface UpstreamSnapshot {
  readonly name: string;
  readonly protocol: string;
  readonly loadBalancer: string;
  readonly breaker:
    | {
        readonly state: "closed" | "open" | "half_open";
        readonly consecutiveFailures: number;
        readonly opensAgainInMs: number;
      }
    | undefined;
  readonly failOpenPicks: number;
  readonly retries: number;
  readonly endpoints: readonly EndpointSnapshot[];
}

/** An operator's change of a breaker or an endpoint. */
export type ForcedState =
  | { readonly upstream: string; readonly breaker: "open" | "closed" }
  | { readonly upstream: string; readonly endpoint: string; readonly action: "eject" | "recover" | "drain" };

export function upstreamSnapshots(
  registry: UpstreamRegistry,
  connectionsOf: (endpoint: Endpoint) => number,
): readonly UpstreamSnapshot[] {
  return registry.all.map(({ name, document, breaker, failOpenPicks, retries, endpoints }) => ({
    name,
    protocol: document.protocol ?? "http1",
    loadBalancer: document.load_balancer ?? "round_robin",
    breaker:
      breaker === undefined
        ? undefined
        : {
            state: breaker.state,
            consecutiveFailures: breaker.consecutiveFailures,
            opensAgainInMs: breaker.opensAgainInMs,
          },
    failOpenPicks,
    retries,
    endpoints: endpoints.map((endpoint) => ({
      key: endpoint.key,
      health: endpoint.health,
      isDraining: endpoint.isDraining,
      weight: endpoint.weight,
      inFlight: endpoint.inFlight,
      connections: connectionsOf(endpoint),
    })),
  }));
}

/** Applies an operator's change; ignores upstreams and endpoints that are gone. */
export function forceState(registry: UpstreamRegistry, forced: ForcedState): void {
  const upstream = registry.get(forced.upstream);
  if ("breaker" in forced) {
    upstream?.breaker?.force(forced.breaker);
    return;
  }
  const endpoint = upstream?.endpoints.find(({ key }) => key === forced.endpoint);
  if (endpoint === undefined) return;
  if (forced.action === "drain") endpoint.isDraining = true;
  else if (forced.action === "eject") endpoint.force("ejected");
  else {
    endpoint.isDraining = false;
    endpoint.force("healthy");
  }
}
