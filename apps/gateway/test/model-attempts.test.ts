import assert from "node:assert/strict";
import { mock, test } from "node:test";
import type { EventKind, Upstream } from "@headworks/gateway-contract";
import { CHUNKED, lengthFraming, NO_BODY } from "@headworks/http1";
import fc from "fast-check";
import { NewRequest, type FakeExchange, type Waiting } from "./model-request.ts";
import { UpstreamRegistry, type UpstreamGroup } from "#upstream/upstream-registry.ts";

/** What may happen next; numbers choose among what there is. */
type Step =
  | { readonly do: "request"; readonly method: string; readonly body: "none" | "length" | "chunked" }
  | { readonly do: "connect" | "refuse" | "saturate"; readonly at: number }
  | { readonly do: "head"; readonly at: number; readonly status: number }
  | { readonly do: "end"; readonly at: number }
  | { readonly do: "lose"; readonly at: number; readonly stale: boolean }
  | { readonly do: "piece" | "complete" | "gone"; readonly at: number }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "reload"; readonly document: number };

const at = fc.nat(50);
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("request" as const),
      method: fc.constantFrom("GET", "PUT", "POST", "DELETE"),
      body: fc.constantFrom("none" as const, "none" as const, "length" as const, "chunked" as const),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("connect" as const), at }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("refuse" as const, "saturate" as const), at }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("head" as const), at, status: fc.constantFrom(200, 404, 500, 502, 503) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("end" as const), at }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("lose" as const), at, stale: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom("piece" as const, "complete" as const, "gone" as const), at }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 400 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reload" as const), document: fc.nat(4) }) },
);

const address = (last: number) => ({ address: `10.0.0.${last}`, port: 80 });
const BREAKER = { consecutive_failures: 2, open_ms: 300, half_open_probes: 2 };
const HEALTH = { consecutive_failures: 2, eject_ms: 200 };
const RETRIES = { attempts: 2, buffer_max_bytes: 100, budget_percent: 100 };
const HEDGED = { ...RETRIES, hedge: { hedge_after_ms: 50, hedge_max: 2 } };
const DOCUMENTS: readonly Upstream[] = [
  { name: "u", endpoints: [1, 2, 3].map(address), breaker: BREAKER, health: HEALTH, retries: RETRIES },
  {
    name: "u",
    endpoints: [1, 2].map(address),
    breaker: { ...BREAKER, half_open_probes: 1, error_volume: 4 },
    health: { ...HEALTH, max_ejected_percent: 50 },
    retries: HEDGED,
    timeouts: { read_ms: 200, request_ms: 900 },
  },
  { name: "u", endpoints: [3].map(address), health: HEALTH, retries: RETRIES },
  { name: "u", endpoints: [1, 2, 3].map(address), breaker: BREAKER, load_balancer: "least_requests" },
  { name: "u", endpoints: [1].map(address), breaker: BREAKER, health: HEALTH, retries: HEDGED },
];

/** The real upstream with everything around it made up, and watched. */
class World {
  nowMs = 0;
  readonly registry: UpstreamRegistry;
  readonly group: UpstreamGroup;
  readonly requests: NewRequest[] = [];
  readonly waiting: Waiting[] = [];
  readonly exchanges: FakeExchange[] = [];
  readonly seenEndpoints = new Set<UpstreamGroup["endpoints"][number]>();
  /** Passes that were not settled, by epoch. */
  readonly #passes = new Map<number, number>();
  #breaker: EventKind = "breaker_closed";
  readonly #out = new Set<string>();

  constructor(document: Upstream) {
    this.registry = new UpstreamRegistry({
      nowMs: () => this.nowMs,
      emit: (kind, payload) => this.#told(kind, "endpoint" in payload ? payload.endpoint : ""),
    });
    this.group = this.registry.prepare(document);
    this.registry.published([document]);
    this.#watch();
  }

  reload(document: Upstream): void {
    this.registry.published([document]);
    assert.equal(this.registry.get("u"), this.group);
    if (document.breaker === undefined) this.#breaker = "breaker_closed";
    const keys = new Set(this.group.endpoints.map(({ key }) => key));
    for (const key of this.#out) if (!keys.has(key)) this.#out.delete(key);
  }

  wait(ms: number): void {
    // In small steps, so that timers find the time that they were set for.
    for (let left = ms; left > 0; left -= 10) {
      this.nowMs += Math.min(10, left);
      mock.timers.tick(Math.min(10, left));
    }
  }

  check(): void {
    for (const request of this.requests) request.check();
    const { breaker } = this.group;
    const trials = breaker?.state === "half_open" ? (this.#passes.get(breaker.epoch) ?? 0) : 0;
    // A reload may lower the bound while trials are out.
    assert.ok(trials <= 2, `${trials} trials`);
    for (const endpoint of this.seenEndpoints) assert.ok(endpoint.inFlight >= 0);
  }

  /** Ends everything that is under way; then nothing may be left. */
  finish(): void {
    for (let round = 0; round < 200 && this.requests.some(({ isDone }) => !isDone); round++) {
      for (const request of this.requests) request.complete();
      for (const waiting of this.waiting.splice(0)) waiting.refuse("connect");
      for (const exchange of this.exchanges.splice(0)) exchange.lose(false);
      this.wait(500);
    }
    for (const exchange of this.exchanges.splice(0)) exchange.lose(false);
    this.wait(2000);
    for (const request of this.requests) {
      request.check();
      assert.equal(request.doneCount, 1, "every request ends once");
    }
    for (const endpoint of this.seenEndpoints) assert.equal(endpoint.inFlight, 0, "nothing is in flight");
    assert.deepEqual(
      [...this.#passes].filter(([, count]) => count !== 0),
      [],
      "every pass was settled once",
    );
  }

  #watch(): void {
    const { group } = this;
    const admit = group.admit.bind(group);
    group.admit = () => {
      const admission = admit();
      if ("epoch" in admission) {
        assert.notEqual(group.breaker?.state, "open", "no traffic while it is open");
        this.#passes.set(admission.epoch, (this.#passes.get(admission.epoch) ?? 0) + 1);
      }
      return admission;
    };
    const settle = group.settle.bind(group);
    group.settle = (epoch, ok) => {
      const left = (this.#passes.get(epoch) ?? 0) - 1;
      assert.ok(left >= 0, "no pass is settled twice");
      this.#passes.set(epoch, left);
      settle(epoch, ok);
    };
    const pick = group.pick.bind(group);
    group.pick = (key, tried) => {
      const picked = pick(key, tried);
      assert.ok(picked !== undefined, "there is always an endpoint, whatever was ejected");
      this.seenEndpoints.add(picked);
      return picked;
    };
  }

  #told(kind: EventKind, endpoint: string): void {
    if (kind === "endpoint_ejected") {
      assert.ok(!this.#out.has(endpoint), `${endpoint} is ejected twice`);
      this.#out.add(endpoint);
    } else if (kind === "endpoint_recovered") {
      assert.ok(this.#out.delete(endpoint), `${endpoint} recovers without an ejection`);
    } else {
      const before: Partial<Record<EventKind, readonly EventKind[]>> = {
        breaker_opened: ["breaker_closed", "breaker_half_open"],
        breaker_half_open: ["breaker_opened"],
        breaker_closed: ["breaker_half_open"],
      };
      assert.ok(before[kind]?.includes(this.#breaker), `${kind} after ${this.#breaker}`);
      this.#breaker = kind;
    }
  }
}

function take(world: World, step: Step): void {
  switch (step.do) {
    case "request": {
      const framing = { none: NO_BODY, length: lengthFraming(40), chunked: CHUNKED }[step.body];
      const request = new NewRequest(world, step.method, framing);
      world.requests.push(request);
      return request.start();
    }
    case "connect":
      return chosen(world.waiting, step.at)?.connect();
    case "refuse":
      return chosen(world.waiting, step.at)?.refuse("connect");
    case "saturate":
      return chosen(world.waiting, step.at)?.refuse("saturated");
    case "head":
      return world.exchanges[step.at % Math.max(1, world.exchanges.length)]?.head(step.status);
    case "end":
      return world.exchanges[step.at % Math.max(1, world.exchanges.length)]?.end();
    case "lose":
      return chosen(world.exchanges, step.at)?.lose(step.stale);
    case "piece":
      return world.requests[step.at % Math.max(1, world.requests.length)]?.piece();
    case "complete":
      return world.requests[step.at % Math.max(1, world.requests.length)]?.complete();
    case "gone":
      return world.requests[step.at % Math.max(1, world.requests.length)]?.goAway();
    case "wait":
      return world.wait(step.ms);
    case "reload":
      return world.reload(structuredClone(DOCUMENTS[step.document % DOCUMENTS.length] ?? { name: "u" }));
  }
}

function chosen<T>(from: T[], index: number): T | undefined {
  return from.splice(index % Math.max(1, from.length), 1)[0];
}

test("whatever requests, endpoints, clients and reloads do: breaker, ejection, retries and hedges keep their promises", () => {
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 150, size: "max" }), fc.nat(4), (list, first) => {
      mock.timers.enable({ apis: ["setTimeout"] });
      try {
        const world = new World(structuredClone(DOCUMENTS[first] ?? { name: "u" }));
        for (const step of list) {
          take(world, step);
          world.check();
        }
        world.finish();
      } finally {
        mock.timers.reset();
      }
    }),
    { numRuns: 600 },
  );
});
