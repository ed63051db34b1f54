import type { Issue } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import type { AcceptedCandidate, GenerationSubscribers, SubmitOutcome } from "#config/generations.ts";
import { createControl, createDataPlane, drainTimeMs, SessionTickets, type ProcessParts } from "#gateway.ts";
import { listenerFollowers } from "#listener-followers.ts";
import type { Clock, EventSink } from "#slice.ts";
import type { IssuedCredential } from "#storage/state-store.ts";
import type { RecentTraffic } from "#slices/metrics/metrics.slice.ts";
import { forceState, upstreamSnapshots, type ForcedState } from "#upstream/upstream-state.ts";
import type { ProcessLink } from "./process-link.ts";
import { countedByControl } from "./counted-by-control.ts";
import { remoteStore } from "./remote-store.ts";
import { divideLimits } from "./share-of-limits.ts";
import type {
  ControlCalls,
  ListenerAddress,
  WorkerCalls,
  WorkerEvent,
  WorkerSetup,
  WorkerStates,
} from "./worker-calls.ts";

/** What a worker has of its own. */
export interface DataPlaneTools {
  readonly link: ProcessLink<ControlCalls, WorkerCalls>;
  readonly log: Logger;
  readonly clock: Clock;
}

/** A candidate that waits for its publication in all workers. */
interface Waiting {
  readonly generation: number;
  readonly outcome: Promise<SubmitOutcome>;
  /** Ends the wait; false: it will not be published. */
  readonly decide: (isPublished: boolean) => void;
}

/** Handles requests in a worker process: the same parts as in a single process, with all state asked of the control process. */
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
      sink: told(link),
      subscribers,
      elsewhere: countedByControl(link),
      scrape: async () => await link.ask("metrics", undefined),
      ownPart: (document) => divideLimits(document, setup),
    };
    this.#control = createControl(this.#parts);
    this.#data = createDataPlane(this.#parts, this.#control);
  }

  /** Publishes what the control process publishes, and listens. Rejects with the reason when that fails. */
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

  /** Lets requests be handled by what was prepared; its listeners are open when this resolves. */
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
    return { upstreams: upstreamSnapshots(upstreams, pools), activeRequests: this.#data.pipeline.activeRequests };
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

  /** Forgets what is cached of a route, or of all; how many routes that are. */
  purge(route: string | undefined): number {
    const { cache } = this.#control.slices;
    if (route === undefined) return cache.purgeAll();
    return cache.purge(route) === undefined ? 0 : 1;
  }

  withdraw(): void {
    this.#data.withdraw();
  }

  /** Drains for at most `graceMs` and hands over what is counted. */
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

/** Events of upstreams go to the control process; it tells those of configurations itself. */
function told(link: DataPlaneTools["link"]): EventSink {
  return {
    emit: (kind, payload) => {
      if (kind === "config_published" || kind === "config_rejected") return;
      link.tell("event", { kind, payload } as WorkerEvent);
    },
  };
}
