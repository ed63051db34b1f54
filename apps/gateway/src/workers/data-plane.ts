import type { Logger } from "pino";
import {
  type ConfigDocument,
  DEFAULT_BUFFERED_BYTES,
  DEFAULT_CONNECTION_CAP,
  DEFAULT_MAX_PENDING,
  type Issue,
} from "@headworks/gateway-contract";
import type { AcceptedCandidate, GenerationSubscribers, SubmitOutcome } from "#config/generations.ts";
import {
  createControl,
  createDataPlane,
  drainTimeMs,
  listenerFollowers,
  type ProcessParts,
  SessionTickets,
} from "#gateway.ts";
import type { Clock, EventSink } from "#slice.ts";
import type { CountedElsewhere } from "#slices.ts";
import type { RecentTraffic } from "#slices/metrics/metrics.slice.ts";
import type { IssuedCredential, StateStore } from "#storage/state-store.ts";
import { type ForcedState, forceState, upstreamSnapshots } from "#upstream/upstream-registry.ts";
import type { ProcessLink } from "./process-link.ts";
import type {
  ControlCalls,
  ListenerAddress,
  WorkerCalls,
  WorkerEvent,
  WorkerSetup,
  WorkerStates,
} from "./worker-calls.ts";

export interface DataPlaneTools {
  readonly link: ProcessLink<ControlCalls, WorkerCalls>;
  readonly log: Logger;
  readonly clock: Clock;
}

/** A candidate awaiting its publication in all workers. */
interface Waiting {
  readonly generation: number;
  readonly outcome: Promise<SubmitOutcome>;
  /** Ends the wait; false: it will not be published. */
  readonly decide: (isPublished: boolean) => void;
}

/** Handles requests in a worker process; all shared state is in the control process. */
export class DataPlane {
  readonly #parts: ProcessParts;
  readonly #control: ReturnType<typeof createControl>;
  readonly #data: ReturnType<typeof createDataPlane>;
  #expected = "";
  #waiting: Waiting | undefined;

  private constructor(setup: WorkerSetup, { link, log, clock }: DataPlaneTools) {
    const { environment, configFile, hasStore, instance, ticketSecret, issued } = setup;
    const own = listenerFollowers(
      () => this.#data.listeners,
      () => drainTimeMs(this.#parts, this.#control.generations),
    );
    const subscribers: GenerationSubscribers = {
      ...own,
      prepare: async (accepted, reading) =>
        accepted.fingerprint === this.#expected ? await own.prepare(accepted, reading) : [OTHER_CONTENT],
    };
    this.#parts = {
      environment,
      log,
      clock,
      configFile,
      instance,
      tickets: new SessionTickets(ticketSecret),
      issued,
      store: hasStore ? remoteStore(link) : undefined,
      sink: eventSink(link),
      subscribers,
      elsewhere: countedByControl(link),
      scrape: async () => await link.call("metrics", undefined),
      ownPart: (document) => divideLimits(document, setup),
    };
    this.#control = createControl(this.#parts);
    this.#data = createDataPlane(this.#parts, this.#control);
  }

  /** Publishes the control process's generation and listens. Rejects with the reason of a failure. */
  static async start(setup: WorkerSetup, tools: DataPlaneTools): Promise<DataPlane> {
    const plane = new DataPlane(setup, tools);
    const { candidate } = setup;
    plane.#expected = candidate.fingerprint;
    const outcome = await plane.#submit(candidate);
    if (plane.#control.generations.current === undefined) {
      await plane.#data.listeners.stop(0);
      throw new Error(problemOf(outcome) ?? "There is no generation");
    }
    return plane;
  }

  get addresses(): readonly ListenerAddress[] {
    return this.#data.listeners.addresses;
  }

  async prepare(candidate: AcceptedCandidate): Promise<string | undefined> {
    this.discard();
    const ready = Promise.withResolvers<string | undefined>();
    const decision = Promise.withResolvers<boolean>();
    this.#expected = candidate.fingerprint;
    const outcome = this.#submit(candidate, async () => {
      ready.resolve(undefined);
      if (!(await decision.promise)) throw new Error("The candidate was given up");
    });
    this.#waiting = { generation: candidate.generation, outcome, decide: decision.resolve };
    void outcome.then((came) => ready.resolve(problemOf(came)));
    return await ready.promise;
  }

  /** Publishes the prepared generation; its listeners are open when this resolves. */
  async publish(generation: number): Promise<readonly ListenerAddress[]> {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting?.generation !== generation) throw new Error("Another generation is prepared");
    waiting.decide(true);
    const { outcome } = await waiting.outcome;
    const { generations } = this.#control;
    if (outcome !== "published" || generations.current === undefined) throw new Error("It could not be published");
    return this.addresses;
  }

  discard(): void {
    this.#waiting?.decide(false);
    this.#waiting = undefined;
  }

  async metricsText(): Promise<string> {
    return await this.#data.metricsText();
  }

  states(): WorkerStates {
    const { upstreams, pools } = this.#control;
    return {
      upstreams: upstreamSnapshots(upstreams, (endpoint) => pools.openConnections(endpoint)),
      activeRequests: this.#data.pipeline.activeRequests,
    };
  }

  traffic(): RecentTraffic {
    return this.#control.slices.metrics.recent();
  }

  force(forced: ForcedState): void {
    forceState(this.#control.upstreams, forced);
  }

  adoptTickets(secret: Uint8Array): void {
    this.#parts.tickets.adopt(secret);
  }

  async adoptIssued(credentials: readonly IssuedCredential[]): Promise<void> {
    await this.#control.issued.replaceAll(credentials);
  }

  /** Clears the cache of a route, or of all; returns the number of routes. */
  purge(route: string | undefined): number {
    const { cache } = this.#control.slices;
    if (route === undefined) return cache.purgeAll();
    return cache.purge(route) === undefined ? 0 : 1;
  }

  withdraw(): void {
    this.#data.withdraw();
  }

  /** Drains for at most `graceMs` and hands over counters. */
  async stop(graceMs: number): Promise<void> {
    this.discard();
    await this.#data.listeners.stop(graceMs);
    await this.#control.generations.settled();
    await this.#control.stop();
  }

  async #submit({ text, files, generation }: AcceptedCandidate, persist?: () => Promise<void>): Promise<SubmitOutcome> {
    const options = persist === undefined ? { force: true } : { force: true, persist };
    return await this.#control.generations.submit({ text, files, generation, source: "reload" }, options);
  }
}

const OTHER_CONTENT: Issue = {
  code: "compile_failed",
  path: "",
  message: "the document comes to something else here than in the control process",
  severity: "error",
};

function problemOf(outcome: SubmitOutcome): string | undefined {
  if (outcome.outcome !== "rejected") return undefined;
  return outcome.issues.find(({ severity }) => severity === "error")?.message ?? "the candidate was rejected";
}

/** Sends events of upstreams to the control process, which emits those of configurations itself. */
function eventSink(link: DataPlaneTools["link"]): EventSink {
  return {
    emit: (kind, payload) => {
      if (kind === "config_published" || kind === "config_rejected") return;
      link.tell("event", { kind, payload } as WorkerEvent);
    },
  };
}

/**
 * The state store of a worker: charges and usage counts go to the control process, which owns the file; all charges
 * of one turn form one message, and the store's group commit spans the workers. Everything else belongs to the
 * control process and rejects here.
 */
function remoteStore(link: ProcessLink<ControlCalls, WorkerCalls>): StateStore {
  const foreign = async (): Promise<never> =>
    await Promise.reject(new Error("Only the control process reads the state store"));
  const nothing = async (): Promise<void> => await Promise.resolve();
  return {
    quotas: {
      charge: async (consumer, budgets, enforce) => {
        try {
          return await link.call("charge", [consumer, budgets, enforce]);
        } catch (error) {
          return { outcome: "failed", error: error instanceof Error ? error.message : String(error) };
        }
      },
      usage: foreign,
      adjust: foreign,
      // The control process does this before a generation runs here.
      syncConsumers: nothing,
    },
    outbox: { append: foreign, acknowledge: foreign, pending: foreign },
    usage: {
      add: async (rows) => await link.call("addUsage", rows),
      totals: foreign,
      oldestHour: foreign,
      addRun: foreign,
      runs: foreign,
      // The current window is written already, so there is nothing to export here.
      lastScheduled: async (_window, beforeS) => await Promise.resolve(beforeS),
    },
    // Workers are notified of changed keys.
    credentials: { all: foreign, add: foreign, retire: foreign },
    recordGeneration: foreign,
    generations: foreign,
    generation: foreign,
    prune: nothing,
    close: nothing,
  };
}

/** One worker of several; `worker` counts from 0. */
interface WorkerPosition {
  readonly worker: number;
  readonly workers: number;
}

/**
 * One worker's part of a limit; the parts add up to the limit. A limit below the number of workers leaves one to
 * each, since a worker with none would refuse everything; 0 stays 0.
 */
export function partOf(total: number, { worker, workers }: WorkerPosition): number {
  if (total <= 0 || !Number.isFinite(total)) return total;
  return Math.max(1, Math.floor(total / workers) + (worker < total % workers ? 1 : 0));
}

/** The document for one of several workers, with limits of requests, connections and queues divided. */
export function divideLimits(document: ConfigDocument, position: WorkerPosition): ConfigDocument {
  const { max_concurrent_requests: maxRequests, admission_queue: queue } = document.gateway;
  return {
    ...document,
    gateway: {
      ...document.gateway,
      max_buffered_bytes: partOf(document.gateway.max_buffered_bytes ?? DEFAULT_BUFFERED_BYTES, position),
      ...(maxRequests === undefined ? {} : { max_concurrent_requests: partOf(maxRequests, position) }),
      ...(queue?.max_queue_size === undefined
        ? {}
        : { admission_queue: { ...queue, max_queue_size: partOf(queue.max_queue_size, position) } }),
    },
    upstreams: document.upstreams.map((upstream) => ({
      ...upstream,
      connection_cap: partOf(upstream.connection_cap ?? DEFAULT_CONNECTION_CAP, position),
      ...(upstream.stalled_connection_cap === undefined
        ? {}
        : { stalled_connection_cap: partOf(upstream.stalled_connection_cap, position) }),
      max_pending: partOf(upstream.max_pending ?? DEFAULT_MAX_PENDING, position),
    })),
  };
}

/**
 * State shared by all workers: rates, and nonces of signed requests. Without the control process, whose end also ends
 * this process, rates are counted locally and signed requests are refused.
 */
function countedByControl(link: ProcessLink<ControlCalls, WorkerCalls>): CountedElsewhere {
  return {
    rates: { charge: async (charges) => await link.call("rates", charges).catch(() => []) },
    nonces: {
      add: async (keyId, nonce, _nowMs, forMs) =>
        await link.call("nonce", [keyId, nonce, forMs]).catch(() => "full" as const),
    },
  };
}
