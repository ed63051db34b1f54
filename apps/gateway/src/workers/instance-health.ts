import type { EventSink } from "#slice.ts";
import type { WorkerEvent } from "./worker-calls.ts";

type BreakerState = "closed" | "open" | "half_open";

/**
 * Merges the health events of several workers, each of which has breakers and health of its own. For the instance a
 * breaker is open while it is open in any worker, and closed when it is closed in all; an endpoint is ejected from
 * its first ejection in a worker to its recovery in the last. Each change is reported once.
 */
export class InstanceHealth {
  readonly #sink: EventSink;
  /** By upstream: the workers whose breaker is not closed. */
  readonly #breakers = new Map<string, Map<number, Exclude<BreakerState, "closed">>>();
  readonly #ejected = new Map<string, { upstream: string; endpoint: string; workers: Set<number> }>();

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  note(worker: number, event: WorkerEvent): void {
    switch (event.kind) {
      case "breaker_opened":
        return this.#breaker(worker, event.payload.upstream, "open", () => this.#sink.emit(event.kind, event.payload));
      case "breaker_half_open":
        return this.#breaker(worker, event.payload.upstream, "half_open");
      case "breaker_closed":
        return this.#breaker(worker, event.payload.upstream, "closed");
      case "endpoint_ejected":
        return this.#eject(worker, event.payload);
      case "endpoint_recovered":
        return this.#recover(worker, event.payload);
      default:
    }
  }

  /** A worker ended, and its ejections and open breakers with it. */
  forget(worker: number): void {
    for (const upstream of this.#breakers.keys()) this.#breaker(worker, upstream, "closed");
    for (const ejected of this.#ejected.values()) this.#recover(worker, ejected);
  }

  #breaker(worker: number, upstream: string, state: BreakerState, opened?: () => void): void {
    const states = this.#breakers.get(upstream) ?? new Map<number, Exclude<BreakerState, "closed">>();
    this.#breakers.set(upstream, states);
    // A second opening in a row: a reload dropped the open breaker.
    const before = opened !== undefined && states.get(worker) === "open" ? "closed" : mergedState(states);
    if (state === "closed") states.delete(worker);
    else states.set(worker, state);
    const after = mergedState(states);
    if (after === before) return;
    if (after === "open") opened?.();
    else if (after === "half_open") this.#sink.emit("breaker_half_open", { upstream });
    else this.#sink.emit("breaker_closed", { upstream, detail: "half_open_probe_succeeded" });
  }

  #eject(worker: number, payload: { readonly upstream: string; readonly endpoint: string }): void {
    const key = `${payload.upstream}\n${payload.endpoint}`;
    const ejected = this.#ejected.get(key) ?? { ...payload, workers: new Set<number>() };
    this.#ejected.set(key, ejected);
    // A second ejection in a row: a reload dropped the ejected endpoint.
    if (ejected.workers.has(worker)) ejected.workers.clear();
    if (ejected.workers.size === 0) this.#sink.emit("endpoint_ejected", payload);
    ejected.workers.add(worker);
  }

  #recover(worker: number, { upstream, endpoint }: { readonly upstream: string; readonly endpoint: string }): void {
    const key = `${upstream}\n${endpoint}`;
    const ejected = this.#ejected.get(key);
    if (ejected?.workers.delete(worker) !== true || ejected.workers.size > 0) return;
    this.#ejected.delete(key);
    this.#sink.emit("endpoint_recovered", { upstream, endpoint });
  }
}

function mergedState(states: ReadonlyMap<number, Exclude<BreakerState, "closed">>): BreakerState {
  const all = [...states.values()];
  return all.includes("open") ? "open" : (all[0] ?? "closed");
}
