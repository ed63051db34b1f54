import cluster from "node:cluster";
import type { Worker } from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import type { Issue } from "@headworks/gateway-contract";
import type { AcceptedCandidate, CheckedReading, GenerationSubscribers } from "#config/generations.ts";
import type { EventSink } from "#slice.ts";
import type { NonceVerdict } from "#slices/consumers/consumers.slice.ts";
import type { RecentTraffic } from "#slices/metrics/metrics.slice.ts";
import type { IssuedCredential, StateStore } from "#storage/state-store.ts";
import type { ForcedState, UpstreamSnapshot } from "#upstream/upstream-registry.ts";
import { InstanceHealth } from "./instance-health.ts";
import { MergedMetrics } from "./merged-metrics.ts";
import { type Batch, type Handlers, ProcessLink } from "./process-link.ts";
import type { ControlCalls, ListenerAddress, WorkerCalls, WorkerStates } from "./worker-calls.ts";

const ENTRY = fileURLToPath(new URL("./worker-process.ts", import.meta.url));

/** A worker process as seen by the control process. */
class WorkerHandle {
  readonly index: number;
  readonly link: ProcessLink<WorkerCalls, ControlCalls>;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;
  /** Number of its running generation; 0 while it starts. */
  generation = 0;
  /** Awaits `publish` or `discard`. */
  isPrepared = false;
  /** Whether a signal ended it. */
  isKilled = false;
  readonly #worker: Worker;

  private constructor(index: number, worker: Worker, handlers: Handlers<ControlCalls>, ended: EndedListener) {
    this.index = index;
    this.#worker = worker;
    this.link = new ProcessLink<WorkerCalls, ControlCalls>((batch) => this.#send(batch), handlers);
    worker.on("message", (batch: Batch) => this.link.receive(batch));
    this.ended = new Promise((resolve) => {
      const end = (how: string): void => {
        this.link.lost(`The worker ended ${how}`);
        ended(how);
        resolve();
      };
      worker.once("exit", (code: number | null, signal: string | null) => {
        this.isKilled = signal !== null;
        end(signal === null ? `with exit code ${code}` : `by ${signal}`);
      });
      worker.on("error", (error: Error) => {
        // A process that could not be created never exits. Other send errors concern a process that is ending.
        if (worker.process.pid === undefined) end(`before it began: ${error.message}`);
      });
    });
  }

  /** Starts a process. All workers listen on the same sockets, and connections are distributed among them. */
  static fork(index: number, handlers: Handlers<ControlCalls>, ended: EndedListener): WorkerHandle {
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    const execArgv = [...process.execArgv, "--disable-sigusr1"];
    cluster.setupPrimary({ exec: ENTRY, args: [], execArgv, serialization: "advanced" });
    return new WorkerHandle(index, cluster.fork(), handlers, ended);
  }

  get pid(): number | undefined {
    return this.#worker.process.pid;
  }

  get isRunning(): boolean {
    return this.generation > 0;
  }

  /** Disconnects it; it exits when its work is done. */
  release(): void {
    if (this.#worker.process.connected) this.#worker.process.disconnect();
  }

  kill(): void {
    this.#worker.process.kill("SIGKILL");
  }

  #send(batch: Batch): void {
    if (this.#worker.process.connected) this.#worker.process.send(batch, () => undefined);
  }
}

const WORST = ["open", "half_open", "closed"] as const;
const WORST_HEALTH = ["ejected", "half_open", "healthy"] as const;

export interface WorkerPoolParts {
  readonly workers: number;
  readonly configFile: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  readonly store: StateStore | undefined;
  /** A token unique to this gateway. */
  readonly instance: string;
  /** The secret of TLS session tickets; `follow` subscribes to changes. */
  readonly tickets: { readonly secret: Uint8Array; follow(changed: () => void): void };
  /** Issued keys beside the document; a new list after each change. */
  readonly issued: () => readonly IssuedCredential[];
  /** Receives events of workers, once each for the instance. */
  readonly events: EventSink;
  /** State shared by all workers. */
  readonly counted: {
    readonly rates: Handlers<ControlCalls>["rates"];
    nonce(keyId: string, nonce: string, forMs: number): NonceVerdict | Promise<NonceVerdict>;
  };
  /** Checks addresses of listeners that workers do not listen on yet. */
  readonly tryListeners: (reading: CheckedReading, open: readonly ListenerAddress[]) => Promise<readonly Issue[]>;
  /** Metrics of the control process. */
  readonly ownMetrics: () => Promise<string>;
}

const MAX_START_RETRIES = 3;
const FIRST_RESTART_MS = 100;
const MAX_RESTART_MS = 10_000;
/** A worker that ran for this long is restarted without a growing delay. */
const STEADY_MS = 30_000;
/** Compiling the largest documents takes seconds; a slower worker counts as hung. */
const RESPONSE_TIMEOUT_MS = 30_000;
/** Timeout of calls that are served from memory. */
const GLANCE_MS = 2000;
const LATE = new Error("A worker does not reply");
/** Added to the drain time of requests. */
const STOP_EXTRA_MS = 5000;
/** For a worker whose requests have ended: a blocked log pipe may keep it alive. */
const ENDING_MS = 3000;

/**
 * The worker processes that handle requests, under the control process that owns all state. A generation is prepared
 * in all workers and published in all or none; a worker that ends is replaced.
 */
export class WorkerPool implements GenerationSubscribers {
  readonly #parts: WorkerPoolParts;
  readonly #handles = new Map<number, WorkerHandle>();
  readonly #metrics = new MergedMetrics();
  readonly #lastMetrics = new Map<WorkerHandle, string>();
  readonly #health: InstanceHealth;
  readonly #handlers: Handlers<ControlCalls>;
  readonly #forced = new Map<string, ForcedState>();
  /** Numbers of first workers that a signal ended. */
  readonly #killedIndexes = new Set<number>();
  readonly #restartMs = new Map<number, number>();
  #prepared: AcceptedCandidate | undefined;
  #running: AcceptedCandidate | undefined;
  #isStarted = false;
  #isWithdrawn = false;
  #isStopping = false;
  addresses: readonly ListenerAddress[] = [];

  constructor(parts: WorkerPoolParts) {
    const { store, counted } = parts;
    this.#parts = parts;
    this.#health = new InstanceHealth(parts.events);
    parts.tickets.follow(() => {
      for (const handle of this.#runningHandles) handle.link.tell("tickets", parts.tickets.secret);
    });
    this.#handlers = {
      charge: ([consumer, budgets, enforce]) =>
        store?.quotas.charge(consumer, budgets, enforce) ?? { outcome: "failed", error: "There is no state store" },
      addUsage: async (rows) => await store?.usage.add(rows),
      rates: counted.rates,
      nonce: ([keyId, nonce, forMs]) => counted.nonce(keyId, nonce, forMs),
      event: () => undefined,
      metrics: async () => await this.metricsText(),
    };
  }

  /** Starts all workers with the published generation. Rejects with the error of the first one that cannot start. */
  async start(): Promise<void> {
    try {
      const indexes = Array.from({ length: this.#parts.workers }, (_, index) => index);
      await Promise.all(indexes.map(async (index) => await this.#forkFirst(index)));
      this.#isStarted = true;
      // A worker that ended while others started is replaced now.
      for (const index of indexes) if (!this.#handles.has(index)) void this.#replace(index, FIRST_RESTART_MS);
    } catch (error) {
      this.#isStopping = true;
      const handles = [...this.#handles.values()];
      for (const handle of handles) handle.kill();
      await Promise.all(handles.map(async ({ ended }) => await ended));
      throw error;
    }
  }

  /** Whether at least one worker accepts requests. */
  get isReady(): boolean {
    return !this.#isWithdrawn && this.#runningHandles.length > 0;
  }

  /** No worker is ready any more, including later ones; all continue. */
  withdraw(): void {
    this.#isWithdrawn = true;
    for (const handle of this.#runningHandles) handle.link.tell("withdraw", undefined);
  }

  async prepare(candidate: AcceptedCandidate, reading: CheckedReading): Promise<readonly Issue[]> {
    const closed = await this.#parts.tryListeners(reading, this.addresses);
    if (closed.length > 0) return closed;
    this.#prepared = candidate;
    const refusals = await Promise.all(
      this.#runningHandles.map(async (handle) => {
        const problem = await this.#prepareIn(handle, candidate);
        return problem === undefined ? [] : [`Worker ${handle.index}: ${problem}`];
      }),
    );
    const problems = refusals.flat();
    if (problems.length === 0) return [];
    this.discard();
    return problems.map((message) => ({ code: "compile_failed", path: "", message, severity: "error" }));
  }

  async publish(): Promise<void> {
    this.#running = this.#prepared;
    this.#prepared = undefined;
    await Promise.all(this.#runningHandles.map(async (handle) => await this.#bringUp(handle)));
  }

  discard(): void {
    this.#prepared = undefined;
    for (const handle of this.#runningHandles) {
      if (handle.isPrepared) handle.link.tell("discard", undefined);
      handle.isPrepared = false;
    }
  }

  async metricsText(): Promise<string> {
    const own = await this.#parts.ownMetrics();
    await this.#collect();
    return this.#metrics.together([own, ...this.#lastMetrics.values()]);
  }

  /** Merged state of upstreams and active requests. */
  async states(): Promise<WorkerStates> {
    return mergeWorkerStates(await this.#callAll(async ({ link }) => await link.call("states", undefined)));
  }

  /** Recent traffic of all routes, without that of ended workers. */
  async traffic(): Promise<RecentTraffic> {
    return mergeTraffic(await this.#callAll(async ({ link }) => await link.call("traffic", undefined)));
  }

  /** Applies an operator's change in every worker, and in later ones as long as it holds. */
  async force(forced: ForcedState): Promise<void> {
    if ("endpoint" in forced) {
      const key = `${forced.upstream}\n${forced.endpoint}`;
      if (forced.action === "drain") this.#forced.set(key, forced);
      else if (forced.action === "recover") this.#forced.delete(key);
    }
    await this.#inAll(async ({ link }) => await link.call("force", forced));
  }

  /** Sets the issued keys of every worker. */
  async giveOut(issued: readonly IssuedCredential[]): Promise<void> {
    await this.#inAll(async ({ link }) => await link.call("issued", issued));
  }

  /** Clears the cache of a route, or of all, in every worker; returns the number of routes. New workers start empty. */
  async purge(route: string | undefined): Promise<number> {
    return Math.max(0, ...(await this.#callAll(async ({ link }) => await link.call("purge", { route }))));
  }

  /** Drains requests for `graceMs`, then ends all workers. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    await Promise.all(
      [...this.#handles.values()].map(async (handle) => {
        const unanswered = setTimeout(() => handle.kill(), graceMs + STOP_EXTRA_MS);
        if (handle.isRunning) await handle.link.call("stop", { graceMs }).catch(() => undefined);
        clearTimeout(unanswered);
        handle.release();
        const ending = setTimeout(() => handle.kill(), ENDING_MS);
        await handle.ended;
        clearTimeout(ending);
      }),
    );
  }

  get #runningHandles(): readonly WorkerHandle[] {
    return [...this.#handles.values()].filter(({ isRunning }) => isRunning);
  }

  /** A signal to all processes can end one before its first line; its replacement handles signals. */
  async #forkFirst(index: number, retries = MAX_START_RETRIES): Promise<void> {
    try {
      await this.#fork(index);
    } catch (error) {
      if (this.#isStopping || !this.#killedIndexes.delete(index) || retries === 0) throw error;
      await this.#forkFirst(index, retries - 1);
    }
  }

  async #fork(index: number): Promise<void> {
    const { log, workers, configFile, environment, store, instance, tickets, issued: keys } = this.#parts;
    const candidate = this.#running;
    if (candidate === undefined) throw new Error("Workers start with a published generation");
    const startedMs = performance.now();
    const handlers: Handlers<ControlCalls> = {
      ...this.#handlers,
      event: (event) => this.#health.note(index, event),
    };
    const handle = WorkerHandle.fork(index, handlers, (how) => this.#ended(handle, how, performance.now() - startedMs));
    this.#handles.set(index, handle);
    const logLevel = log.level;
    const hasStore = store !== undefined;
    const ticketSecret = tickets.secret;
    const issued = keys();
    this.addresses = await handle.link.call("start", {
      worker: index,
      workers,
      configFile,
      environment,
      logLevel,
      hasStore,
      instance,
      ticketSecret,
      issued,
      candidate,
    });
    handle.generation = candidate.generation;
    for (const forced of this.#forced.values()) handle.link.tell("force", forced);
    if (this.#isWithdrawn) handle.link.tell("withdraw", undefined);
    // They may have changed while the worker started.
    if (tickets.secret !== ticketSecret) handle.link.tell("tickets", tickets.secret);
    if (keys() !== issued) handle.link.tell("issued", keys());
    // Another generation may have been published meanwhile.
    await this.#bringUp(handle);
    log.info({ code: "worker_started", worker: index, worker_pid: handle.pid }, "A worker accepts requests");
  }

  #ended(handle: WorkerHandle, how: string, ranMs: number): void {
    const { index, pid } = handle;
    this.#health.forget(index);
    const metrics = this.#lastMetrics.get(handle);
    if (metrics !== undefined) this.#metrics.depart(metrics);
    this.#lastMetrics.delete(handle);
    handle.generation = 0;
    if (this.#handles.get(index) === handle) this.#handles.delete(index);
    if (!this.#isStarted && handle.isKilled) this.#killedIndexes.add(index);
    if (this.#isStopping || !this.#isStarted) return;
    const known = this.#restartMs.get(index);
    const waitMs = known === undefined || ranMs > STEADY_MS ? FIRST_RESTART_MS : Math.min(known * 2, MAX_RESTART_MS);
    this.#restartMs.set(index, waitMs);
    const { log } = this.#parts;
    log.error({ code: "worker_ended", worker: index, worker_pid: pid, restart_ms: waitMs }, `A worker ended ${how}`);
    void this.#replace(index, waitMs);
  }

  async #replace(index: number, waitMs: number): Promise<void> {
    await sleep(waitMs, undefined, { ref: false });
    if (this.#isStopping) return;
    await this.#fork(index).catch((error: unknown) => {
      this.#parts.log.error({ code: "worker_failed", worker: index, err: error }, "A worker could not be started");
      // Its end triggers the next attempt.
      this.#handles.get(index)?.kill();
    });
  }

  /** Returns undefined also for a worker that ended meanwhile: its replacement starts with the published generation. */
  async #prepareIn(handle: WorkerHandle, candidate: AcceptedCandidate): Promise<string | undefined> {
    try {
      const problem = await this.#replyOf(handle, async ({ link }) => await link.call("prepare", candidate));
      handle.isPrepared = problem === undefined;
      return problem;
    } catch (error) {
      if (handle.isRunning) return error instanceof Error ? error.message : String(error);
      return undefined;
    }
  }

  /** The reply of a worker; one that does not reply in time is replaced. */
  async #replyOf<T>(handle: WorkerHandle, call: (handle: WorkerHandle) => Promise<T>): Promise<T> {
    const timer = setTimeout(() => handle.kill(), RESPONSE_TIMEOUT_MS);
    try {
      return await call(handle);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Calls every worker; one that fails is replaced, and its replacement is set up at its start. */
  async #inAll(call: (handle: WorkerHandle) => Promise<unknown>): Promise<void> {
    await Promise.all(
      this.#runningHandles.map(async (handle) => await this.#replyOf(handle, call).catch(() => handle.kill())),
    );
  }

  /** Publishes the current generation in one worker; one that fails is replaced. */
  async #bringUp(handle: WorkerHandle): Promise<void> {
    const running = this.#running;
    if (running === undefined || handle.generation >= running.generation) return;
    const problem = handle.isPrepared ? undefined : await this.#prepareIn(handle, running);
    if (!handle.isRunning) return;
    if (problem !== undefined) {
      this.#parts.log.error({ code: "worker_failed", worker: handle.index }, `A worker cannot follow: ${problem}`);
      handle.kill();
      return;
    }
    try {
      this.addresses = await handle.link.call("publish", running.generation);
    } catch {
      handle.kill();
      return;
    }
    handle.isPrepared = false;
    handle.generation = running.generation;
    await this.#bringUp(handle);
  }

  async #collect(): Promise<void> {
    await this.#callAll(async (handle) => {
      const text = await handle.link.call("metrics", undefined);
      if (handle.isRunning) this.#lastMetrics.set(handle, text);
    });
  }

  /** Replies of the workers that are alive and responsive; others are left out. */
  async #callAll<T>(call: (handle: WorkerHandle) => Promise<T>): Promise<readonly T[]> {
    const tooLate = new AbortController();
    const limit = sleep(GLANCE_MS, undefined, { signal: tooLate.signal }).then(async () => await Promise.reject(LATE));
    limit.catch(() => undefined);
    const asked = this.#runningHandles.map(async (handle) => await Promise.race([call(handle), limit]));
    const responses = await Promise.allSettled(asked);
    tooLate.abort();
    return responses.flatMap((response) => (response.status === "fulfilled" ? [response.value] : []));
  }
}

/** Merges the states of workers: sums, and the worst health. */
export function mergeWorkerStates(each: readonly WorkerStates[]): WorkerStates {
  const all = new Map<string, UpstreamSnapshot>();
  for (const upstream of each.flatMap(({ upstreams }) => upstreams)) {
    const known = all.get(upstream.name);
    all.set(upstream.name, known === undefined ? upstream : together(known, upstream));
  }
  return {
    upstreams: [...all.values()],
    activeRequests: each.reduce((total, { activeRequests }) => total + activeRequests, 0),
  };
}

export function mergeTraffic(each: readonly RecentTraffic[]): RecentTraffic {
  const requests = new Map<string, number>();
  for (const [route, count] of each.flatMap((one) => one.requests)) {
    requests.set(route, (requests.get(route) ?? 0) + count);
  }
  return { spanMs: Math.max(0, ...each.map((one) => one.spanMs)), requests: [...requests] };
}

function worst<T>(order: readonly T[], a: T, b: T): T {
  return order.indexOf(a) <= order.indexOf(b) ? a : b;
}

function together(a: UpstreamSnapshot, b: UpstreamSnapshot): UpstreamSnapshot {
  const others = new Map(b.endpoints.map((endpoint) => [endpoint.key, endpoint]));
  const known = new Set(a.endpoints.map(({ key }) => key));
  return {
    ...a,
    breaker:
      a.breaker === undefined || b.breaker === undefined
        ? (a.breaker ?? b.breaker)
        : {
            state: worst(WORST, a.breaker.state, b.breaker.state),
            consecutiveFailures: Math.max(a.breaker.consecutiveFailures, b.breaker.consecutiveFailures),
            opensAgainInMs: Math.max(a.breaker.opensAgainInMs, b.breaker.opensAgainInMs),
          },
    failOpenPicks: a.failOpenPicks + b.failOpenPicks,
    retries: a.retries + b.retries,
    endpoints: [
      ...a.endpoints.map((endpoint) => {
        const other = others.get(endpoint.key);
        if (other === undefined) return endpoint;
        return {
          ...endpoint,
          health: worst(WORST_HEALTH, endpoint.health, other.health),
          isDraining: endpoint.isDraining || other.isDraining,
          inFlight: endpoint.inFlight + other.inFlight,
          connections: endpoint.connections + other.connections,
        };
      }),
      ...b.endpoints.filter(({ key }) => !known.has(key)),
    ],
  };
}

/** Receives how a worker ended, in words. */
type EndedListener = (how: string) => void;
