import { hash } from "node:crypto";
import type { Upstream } from "@headworks/gateway-contract";
import type { Endpoint } from "./endpoint.ts";

/** Inputs of balancing. */
export interface PickKey {
  /** For `ip_hash`, and for `header_hash` if the header is absent. */
  readonly clientAddress: string;
  /** Value of the field that `header_hash` names. */
  readonly headerValue: string | undefined;
}

/** Chooses one of the candidates, which are never empty and in document order. */
export type Balancer = (candidates: readonly Endpoint[], key: PickKey, nowMs: number) => Endpoint;

const VIRTUAL_NODES = 160;
const MAX_RING_SIZE = 65_536;

export function createBalancer(document: Upstream, endpoints: readonly Endpoint[]): Balancer {
  switch (document.load_balancer ?? "round_robin") {
    case "round_robin":
      return roundRobin(document.slow_start_ms ?? 0);
    case "least_requests":
      return (candidates) => best(candidates, (endpoint) => endpoint.inFlight);
    case "random":
      return twoChoices;
    case "peak_ewma":
      return (candidates, _key, nowMs) => best(candidates, (endpoint) => endpoint.costAt(nowMs));
    case "ip_hash":
      return onRing(endpoints, (key) => key.clientAddress);
    case "header_hash":
      return onRing(endpoints, (key) => key.headerValue ?? key.clientAddress);
  }
}

function first(candidates: readonly Endpoint[]): Endpoint {
  const [endpoint] = candidates;
  if (endpoint === undefined) throw new RangeError("There is no endpoint to choose");
  return endpoint;
}

/** The cheapest candidate; the first declared among equals. */
function best(candidates: readonly Endpoint[], costOf: (endpoint: Endpoint) => number): Endpoint {
  let chosen = first(candidates);
  let lowest = costOf(chosen);
  for (const endpoint of candidates) {
    const cost = costOf(endpoint);
    if (cost >= lowest) continue;
    chosen = endpoint;
    lowest = cost;
  }
  return chosen;
}

/** Smooth weighted round robin: exact weights over a full period, evenly spread. */
function roundRobin(slowStartMs: number): Balancer {
  return (candidates, _key, nowMs) => {
    let total = 0;
    let chosen = first(candidates);
    for (const endpoint of candidates) {
      const weight = rampedWeight(endpoint, slowStartMs, nowMs);
      total += weight;
      endpoint.currentWeight += weight;
      if (endpoint.currentWeight > chosen.currentWeight) chosen = endpoint;
    }
    chosen.currentWeight -= total;
    return chosen;
  };
}

/** Initial weight of an endpoint of weight 1, which a ramp from 1 would not slow. */
const MIN_START = 0.1;

/** Rises from 1 to the configured weight during slow start. */
function rampedWeight(endpoint: Endpoint, slowStartMs: number, nowMs: number): number {
  const ageMs = nowMs - endpoint.sinceMs;
  if (slowStartMs === 0 || ageMs >= slowStartMs) return endpoint.weight;
  const start = endpoint.weight > 1 ? 1 : MIN_START;
  return start + (endpoint.weight - start) * (ageMs / slowStartMs);
}

/** The less busy of two random endpoints. */
function twoChoices(candidates: readonly Endpoint[]): Endpoint {
  if (candidates.length === 1) return first(candidates);
  const one = Math.floor(Math.random() * candidates.length);
  const other = (one + 1 + Math.floor(Math.random() * (candidates.length - 1))) % candidates.length;
  const [a, b] = [candidates[one] ?? first(candidates), candidates[other] ?? first(candidates)];
  return b.inFlight < a.inFlight ? b : a;
}

/** Consistent hashing: removing an endpoint moves only its own share. */
function onRing(endpoints: readonly Endpoint[], textOf: (key: PickKey) => string): Balancer {
  const ring = ringOf(endpoints);
  return (candidates, key) => {
    const position = ringPositionOf(textOf(key));
    let low = 0;
    let high = ring.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((ring[middle]?.position ?? 0) < position) low = middle + 1;
      else high = middle;
    }
    for (let step = 0; step < ring.length; step++) {
      const found = ring[(low + step) % ring.length]?.endpoint;
      if (found !== undefined && candidates.includes(found)) return found;
    }
    return first(candidates);
  };
}

interface RingNode {
  readonly position: number;
  readonly endpoint: Endpoint;
}

/** Nodes in proportion to the weights as far as they fit, at least one per endpoint. */
function ringOf(endpoints: readonly Endpoint[]): RingNode[] {
  const totalWeight = endpoints.reduce((sum, { weight }) => sum + weight, 0);
  const perUnit = Math.min(VIRTUAL_NODES, MAX_RING_SIZE / Math.max(1, totalWeight));
  const ring: RingNode[] = [];
  for (const endpoint of endpoints) {
    const nodes = Math.max(1, Math.floor(perUnit * endpoint.weight));
    for (let node = 0; node < nodes; node++) {
      ring.push({ position: ringPositionOf(`${endpoint.key}#${node}`), endpoint });
    }
  }
  return ring.sort((a, b) => a.position - b.position);
}

/** A 32-bit hash of the text, as the position on the ring. */
function ringPositionOf(text: string): number {
  return Number.parseInt(hash("sha256", text).slice(0, 8), 16);
}
