// Tested by ../test/pipeline.test.ts
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Issue } from "@headworks/gateway-contract";
import { DeadlineSweep } from "@headworks/sockets";
import type { Logger } from "pino";
import { Generations, type SubmitOutcome } from "#config/generations.ts";
import { readConfigFile, watchFile, type TextOutcome } from "#config/watch-file.ts";
import { numberOf, ListenerSet } from "#listener/listener-set.ts";
import { AdmissionControl } from "#request/admission.ts";
import { dryRunReport } from "#request/dry-run-report.ts";
import { EventBus } from "#events/event-bus.ts";
import { Pipeline } from "#request/pipeline.ts";
import { compileRouteTable } from "#routing/route-table.ts";
import { openStateStore } from "#storage/open-state-store.ts";
import type { StateStore } from "#storage/state-store.ts";
import { EndpointPools } from "#upstream/endpoint-pools.ts";
import { UpstreamRegistry } from "#upstream/upstream-registry.ts";
import { UpstreamUpkeep } from "#upstream/upstream-upkeep.ts";
import { systemClock } from "./clock.ts";
import { openAdminPlane } from "./admin-plane.ts";
import { connectionServices, reservedAnswer, targetProblem } from "./client-requests.ts";
import { documentChecks } from "./document-checks.ts";
import { gatewayFacts } from "./gateway-facts.ts";
import { compileActions } from "./route-actions.ts";
import type { Clock } from "./slice.ts";
import { createSlices, inAnswerOrder, inGateOrder } from "./slices.ts";

/** How a gateway is started. */
export interface GatewayOptions {
  /** The document's file. */
  readonly configFile: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  readonly clock?: Clock;
}

/** A started gateway. */
export interface RunningGateway {
  readonly generations: Generations;
  readonly addresses: ListenerSet["addresses"];
  /** Where the admin API is; undefined without an `admin` section. */
  readonly adminUrl: string | undefined;
  /** Reads the file again; SIGHUP publishes even an unchanged one. */
  reload(force: boolean): Promise<SubmitOutcome>;
  /** Takes no more connections, lets requests end for `graceMs`, then stops everything. */
  stop(graceMs?: number): Promise<void>;
}

/** The document cannot be run; the issues say why. */
export class RejectedDocumentError extends Error {
  readonly issues: readonly Issue[];

  constructor(issues: readonly Issue[]) {
    super("The configuration has errors");
    this.issues = issues;
  }
}

/**
 * Puts all parts together, publishes the document and starts listening. Throws {@link RejectedDocumentError} for a
 * document with errors; what the system says of files and ports keeps its code.
 */
export async function createGateway(options: GatewayOptions): Promise<RunningGateway> {
  const { environment, log, clock = systemClock } = options;
  const configFile = resolve(options.configFile);
  const statePath = environment["GATEWAY_STATE_DB"];
  const store =
    statePath === undefined || statePath === "" ? undefined : await openStateStore({ path: statePath, log, clock });
  try {
    return await assemble({ environment, log, clock, configFile, store });
  } catch (error) {
    await store?.close();
    throw error;
  }
}

interface Parts {
  readonly environment: GatewayOptions["environment"];
  readonly log: Logger;
  readonly clock: Clock;
  readonly configFile: string;
  readonly store: StateStore | undefined;
}

async function assemble(parts: Parts): Promise<RunningGateway> {
  const { configFile } = parts;
  const control = createControl(parts);
  const { generations, events, slices } = control;
  const firstText = readFileSync(configFile, "utf8");
  const first = await generations.submit({ text: firstText, source: "startup" });
  if (first.outcome !== "published" || generations.current === undefined) {
    await events.stop();
    throw new RejectedDocumentError(first.outcome === "rejected" ? first.issues : []);
  }
  events.start(slices.webhooks);
  const data = createDataPlane(parts, control);
  const { admin, listeners } = generations.current.document;
  const adminServer =
    admin === undefined ? undefined : await openAdminPlane({ ...parts, ...control, ...data, admin, configFile });
  await data.listeners.open(listeners);
  const reload = async (force: boolean, read?: TextOutcome): Promise<SubmitOutcome> => {
    const file = read ?? (await readConfigFile(configFile));
    if (!file.ok) return await generations.refuse(file.why);
    return await generations.submit({ text: file.text, source: "reload" }, { force });
  };
  const watch = watchFile(configFile, firstText, async (read) => void (await reload(false, read)));
  const graceMs = (): number => drainTimeMs(parts, generations);
  generations.onPublished(({ document }) => void data.listeners.follow(document.listeners, graceMs()));
  return {
    generations,
    get addresses() {
      return data.listeners.addresses;
    },
    adminUrl: adminServer?.url,
    reload: async (force) => await reload(force),
    stop: async (limitMs = graceMs()) => {
      await watch.close();
      await data.listeners.stop(limitMs);
      await adminServer?.stop(limitMs);
      await generations.settled();
      await events.stop();
      for (const slice of slices.all) await slice.stop?.();
      control.upkeep.stop();
      control.pools.stop();
      control.deadlines.stop();
      await parts.store?.close();
    },
  };
}

/** What is published and what lives on from generation to generation. */
function createControl({ environment, log, clock, configFile, store }: Parts) {
  const events = new EventBus({ log, clock, ...(store === undefined ? {} : { outbox: store.outbox }) });
  const deadlines = new DeadlineSweep();
  const upstreams = new UpstreamRegistry({
    nowMs: () => clock.monotonic(),
    emit: (kind, payload) => events.emit(kind, payload),
  });
  const pools = new EndpointPools(deadlines);
  const upkeep = new UpstreamUpkeep({ upstreams, pools, log });
  const slices = createSlices({ log, clock, store, environment });
  const generations = new Generations({
    slices: inGateOrder(slices.all),
    answerOrder: inAnswerOrder(slices.all),
    compileTable: compileRouteTable,
    compileActions: (document) => {
      const actions = compileActions(document, upstreams, pools);
      const published = (): void => {
        // Before its publication is told, so that the envelope has the name.
        events.rename(document.gateway.name ?? "gateway");
        actions.published();
        upkeep.published();
      };
      return { ...actions, published };
    },
    checks: documentChecks(slices.all),
    clock,
    environment,
    events,
    log,
    directory: dirname(configFile),
    ...(store === undefined ? {} : { archive: store }),
  });
  return { events, deadlines, upstreams, pools, upkeep, slices, generations };
}

/** What handles requests. */
function createDataPlane({ environment, log }: Parts, control: ReturnType<typeof createControl>) {
  const { slices, generations, pools, deadlines } = control;
  const pipeline = new Pipeline({
    pools,
    observers: slices.all.flatMap(({ observer }) => (observer === undefined ? [] : [observer])),
    reserved: (request) => reservedAnswer(request, generations, metricsText),
    targetProblem,
    admission: new AdmissionControl({
      report: dryRunReport(log, "load_shed", (route) => slices.metrics.dryRun("load_shed", route)),
    }),
    log,
  });
  const metricsText = async (): Promise<string> =>
    await slices.metrics.text(await gatewayFacts({ ...control, pipeline, listeners }));
  const services = connectionServices(generations, pipeline, deadlines, environment);
  const listeners = new ListenerSet({ services, environment, log, watch: watchAny });
  return { pipeline, metricsText, listeners };
}

/** Tells that a file changed, whatever is in it now. */
function watchAny(path: string, changed: () => void): { close(): Promise<void> } {
  return watchFile(path, undefined, async () => {
    changed();
    await Promise.resolve();
  });
}

const DRAIN_S = 10;

/** How long requests may go on after the listeners closed. */
function drainTimeMs({ environment }: Parts, generations: Generations): number {
  return (
    generations.current?.document.gateway.shutdown_timeout_ms ??
    numberOf(environment["GATEWAY_SHUTDOWN_TIMEOUT_SECS"], DRAIN_S) * 1000
  );
}
