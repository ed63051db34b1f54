import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import {
  type ConfigDocument,
  DEFAULT_ADMIN_BIND,
  DEFAULT_BUFFERED_BYTES,
  type Issue,
  type Route,
  type Service,
} from "@headworks/gateway-contract";
import { parseCookies, reasonPhrase } from "@headworks/http-fields";
import { asciiTarget, fieldValues, NO_BODY } from "@headworks/http1";
import { type BufferBudget, DeadlineSweep } from "@headworks/sockets";
import type { AdminServer } from "#admin/admin-server.ts";
import type { CompiledActions } from "#config/compile.ts";
import {
  type CheckedReading,
  GenerationHistory,
  Generations,
  type GenerationSubscribers,
  type NoText,
  type SubmitOutcome,
  type SubmittedText,
} from "#config/generations.ts";
import { onlyListenerOf } from "#config/check-listeners.ts";
import { type FileWatch, readConfigFile, ReloadRequests, watchFile } from "#config/watch-file.ts";
import { EventBus } from "#events/event-bus.ts";
import { environmentNumber, environmentProblems } from "#listener/environment-numbers.ts";
import { type ListenerProblem, ListenerSet, tryAddresses, whyNoAddress } from "#listener/listener-set.ts";
import { SessionTickets } from "#listener/tls-acceptor.ts";
import { AdmissionControl } from "#request/admission.ts";
import {
  dryRunReport,
  type Generation,
  type ListenerFacts,
  type Peer,
  RequestContext,
  type Response,
} from "#request/context.ts";
import { newRequestId, X_REQUEST_ID } from "#request/forwarding-rules.ts";
import { Pipeline } from "#request/pipeline.ts";
import { errorResponse } from "#request/response-sender.ts";
import { compileResponseAction, compileRewrite } from "#routing/actions.ts";
import { canonicalTarget, checkPath } from "#routing/request-path.ts";
import { compileRouteTable } from "#routing/route-table.ts";
import { IssuedKeys } from "#slices/consumers/consumers.slice.ts";
import type { RecentTraffic } from "#slices/metrics/metrics.slice.ts";
import { openStateStore } from "#storage/open-state-store.ts";
import type { IssuedCredential, StateStore } from "#storage/state-store.ts";
import { EndpointPools } from "#upstream/endpoint-pools.ts";
import { UpstreamMaintenance } from "#upstream/name-discovery.ts";
import {
  compileService,
  type ForcedState,
  UpstreamRegistry,
  type UpstreamSnapshot,
} from "#upstream/upstream-registry.ts";
import { WorkerPool } from "#workers/worker-pool.ts";
import type { AdminPlaneParts } from "./admin-plane.ts";
import { systemClock } from "./clock.ts";
import { documentChecks } from "./document-checks.ts";
import { gatewayFacts } from "./gateway-facts.ts";
import type { Clock, EventSink } from "./slice.ts";
import { type CountedElsewhere, createSlices, inGateOrder, inResponseOrder } from "./slices.ts";

export interface GatewayOptions {
  /** The document's file. */
  readonly configFile: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  readonly clock?: Clock;
  /** Processes that handle requests; default 1: this one. */
  readonly workers?: number;
  /** Publish the file when it changes; default true. */
  readonly followsFile?: boolean;
}

export interface RunningGateway {
  readonly generations: Generations;
  readonly addresses: Traffic["addresses"];
  /** URL of the admin API; undefined without an `admin` section. */
  readonly adminUrl: string | undefined;
  /** Reads the file again; with `force` (SIGHUP) publishes even an unchanged one. Queued calls are merged. */
  reload(force: boolean): Promise<SubmitOutcome>;
  /**
   * The first step of a stop: `/readyz` returns 503 from now on while everything else continues, so that load
   * balancers redirect their clients. Resolves after `shutdown_delay_ms`, or as soon as `hasten` aborts.
   */
  withdraw(hasten: AbortSignal): Promise<void>;
  /** Accepts no more connections, drains requests for `graceMs`, then stops everything. */
  stop(graceMs?: number): Promise<void>;
}

/** The document cannot run; the issues give the reasons. */
export class RejectedDocumentError extends Error {
  readonly issues: readonly Issue[];

  constructor(issues: readonly Issue[]) {
    const isOfThisMachine = issues.every(({ code, severity }) => severity !== "error" || code === "compile_failed");
    super(isOfThisMachine ? "The configuration cannot run here" : "The configuration has errors");
    this.issues = issues;
  }
}

/**
 * Creates all parts, publishes the document and starts listening. Throws {@link RejectedDocumentError} for a document
 * with errors; errors of files and ports keep their code.
 */
export async function createGateway(options: GatewayOptions): Promise<RunningGateway> {
  const { environment, log, clock = systemClock } = options;
  const configFile = resolve(options.configFile);
  const problems = environmentProblems(environment);
  if (problems.length > 0) throw new Error(problems.join("\nsluice: "));
  const statePath = environment["GATEWAY_STATE_DB"];
  const store =
    statePath === undefined || statePath === "" ? undefined : await openStateStore({ path: statePath, log, clock });
  try {
    const instance = randomBytes(8).toString("hex");
    const issued = await store?.credentials.all();
    const tickets = new SessionTickets();
    const parts = { environment, log, clock, configFile, store, instance, issued, tickets };
    return await assemble(parts, options.workers ?? 1, options.followsFile ?? true);
  } catch (error) {
    await store?.close();
    throw error;
  }
}

export { SessionTickets };

export interface ProcessParts {
  readonly environment: GatewayOptions["environment"];
  readonly log: Logger;
  readonly clock: Clock;
  readonly configFile: string;
  readonly store: StateStore | undefined;
  /** A token unique to this gateway, equal in all its processes. */
  readonly instance: string;
  readonly tickets: SessionTickets;
  /** Keys issued before the start. */
  readonly issued?: readonly IssuedCredential[] | undefined;
  /** Receives events; default: this process's event bus. */
  readonly sink?: EventSink;
  /** False in the control process of workers, which needs no state of upstreams. */
  readonly hasTraffic?: boolean;
  readonly elsewhere?: CountedElsewhere;
  readonly subscribers?: GenerationSubscribers;
  /** Serves a scrape; default: this process's own metrics. */
  readonly scrape?: () => Promise<string>;
  readonly ownPart?: (document: ConfigDocument) => ConfigDocument;
}

/** Request handling in this process, or in workers. */
interface Traffic {
  readonly addresses: ListenerSet["addresses"];
  /** Listeners of this process. */
  readonly listeners: ListenerSet | undefined;
  readonly metricsText: () => Promise<string>;
  readonly admin: Pick<AdminPlaneParts, "pipeline" | "traffic" | "isReady">;
  /** Runs after a generation was published. */
  start(): Promise<void>;
  /** Reports not ready from now on. */
  withdraw(): void;
  stop(graceMs: number): Promise<void>;
}

async function assemble(parts: ProcessParts, workers: number, followsFile: boolean): Promise<RunningGateway> {
  const { configFile } = parts;
  const pool = workers > 1 ? createPool(parts, workers, () => control) : undefined;
  const graceMs = (): number => drainTimeMs(parts, generations);
  const listening = pool ?? listenerFollowers(() => traffic.listeners, graceMs);
  const subscribers = alsoOpening(listening, async (reading) => {
    if (generations.current === undefined) adminServer = await openAdmin(reading, adminParts());
  });
  const control: Control = createControl({ ...parts, hasTraffic: pool === undefined, subscribers });
  const { generations, events, slices, issued } = control;
  const traffic: Traffic = pool === undefined ? trafficHere(createDataPlane(parts, control)) : trafficIn(pool);
  issued.follow(async () => await pool?.giveOut(issued.all));
  let adminServer: AdminServer | undefined;
  const adminParts = (): Omit<AdminPlaneParts, "admin"> => {
    const onWritten = (text: string): void => watch?.expect(text);
    return { ...parts, ...control, ...traffic.admin, metricsText: traffic.metricsText, configFile, onWritten };
  };
  const close = async (limitMs: number): Promise<void> => {
    await traffic.stop(limitMs);
    await adminServer?.stop(limitMs);
    await generations.settled();
    await events.stop();
    await control.stop();
  };
  let watch: FileWatch | undefined;
  const firstText = readFileSync(configFile, "utf8");
  try {
    await publishFirst(generations, firstText);
    events.start(slices.webhooks);
    await traffic.start();
  } catch (error) {
    // Any remaining part would keep the process alive: a gateway that serves nothing but reports ready.
    await close(0);
    throw error;
  }
  parts.tickets.start();
  const inFile = async (): Promise<SubmittedText | NoText> => {
    const file = await readConfigFile(configFile);
    if (!file.ok) return { why: `The file ${configFile} ${file.why}` };
    return { text: file.text, source: "reload" };
  };
  const reloads = new ReloadRequests(async (force) => await generations.submit(inFile, { force }));
  if (followsFile) watch = watchFile(configFile, firstText, async () => void (await reloads.request(false)));
  return {
    generations,
    get addresses() {
      return traffic.addresses;
    },
    adminUrl: adminServer?.url,
    reload: async (force) => await reloads.request(force),
    withdraw: async (hasten) => {
      // Not logged: a log pipe without a reader would keep the process from ending.
      traffic.withdraw();
      await sleep(withdrawalMs(parts, generations), undefined, { signal: hasten }).catch(() => undefined);
    },
    stop: async (limitMs = graceMs()) => {
      await watch?.close();
      parts.tickets.stop();
      await close(limitMs);
      await parts.store?.close();
    },
  };
}

async function publishFirst(generations: Generations, text: string): Promise<void> {
  const first = await generations.submit({ text, source: "startup" });
  if (first.outcome !== "published") throw new RejectedDocumentError(first.outcome === "rejected" ? first.issues : []);
}

/** Opens, besides `listening`, what a generation needs. A failure rejects the document. */
function alsoOpening(
  listening: GenerationSubscribers,
  open: (reading: CheckedReading) => Promise<void>,
): GenerationSubscribers {
  return {
    prepare: async (candidate, reading) => {
      const issues = await listening.prepare(candidate, reading);
      if (issues.length > 0) return issues;
      try {
        await open(reading);
        return [];
      } catch (error) {
        const { message } = error as Error;
        return [{ code: "compile_failed", ...reading.positions.locate(["admin"]), message, severity: "error" }];
      }
    },
    publish: async () => await listening.publish(),
    discard: () => listening.discard(),
  };
}

/** Loaded on demand: a quarter of all files serve the admin API alone, and workers have none. */
async function openAdmin(
  { document: { admin } }: CheckedReading,
  parts: Omit<AdminPlaneParts, "admin">,
): Promise<AdminServer | undefined> {
  if (admin === undefined) return undefined;
  const { openAdminPlane } = await import("./admin-plane.ts");
  try {
    return await openAdminPlane({ ...parts, admin });
  } catch (error) {
    const bind = admin.bind ?? DEFAULT_ADMIN_BIND;
    const why = whyNoAddress(Number(bind.slice(bind.lastIndexOf(":") + 1)), error);
    throw why === undefined ? error : new Error(`The admin API cannot listen on ${bind}: ${why}`, { cause: error });
  }
}

function createPool(parts: ProcessParts, workers: number, control: () => Control): WorkerPool {
  return new WorkerPool({
    ...parts,
    workers,
    events: { emit: (kind, payload) => control().events.emit(kind, payload) },
    issued: () => control().issued.all,
    counted: {
      rates: (charges) => control().slices.rateLimits.charge(charges),
      nonce: (keyId, nonce, forMs) => control().slices.nonces.add(keyId, nonce, parts.clock.monotonic(), forMs),
    },
    tryListeners: async (reading, open) =>
      listenerIssues(await tryAddresses(reading.document.listeners, open), reading),
    ownMetrics: async () => {
      const { slices } = control();
      return await slices.metrics.text(await gatewayFacts({ ...control(), ...NO_TRAFFIC }));
    },
  });
}

const NO_TRAFFIC = {
  pipeline: { activeRequests: 0 },
  listeners: { states: [] },
  admission: { queueCounts: { admitted: 0, timeout: 0, queueFull: 0, depth: 0 } },
};

function trafficIn(pool: WorkerPool): Traffic {
  const activeRequests = async (): Promise<number> => (await pool.states()).activeRequests;
  const upstreams = async (): Promise<readonly UpstreamSnapshot[]> => (await pool.states()).upstreams;
  const recent = async (): Promise<RecentTraffic> => await pool.traffic();
  const force = async (forced: ForcedState): Promise<void> => await pool.force(forced);
  const purge = async (route: string | undefined): Promise<number> => await pool.purge(route);
  return {
    get addresses() {
      return pool.addresses;
    },
    listeners: undefined,
    metricsText: async () => await pool.metricsText(),
    admin: {
      pipeline: NO_TRAFFIC.pipeline,
      isReady: () => pool.isReady,
      traffic: { activeRequests, upstreams, recent, force, purge },
    },
    start: async () => await pool.start(),
    withdraw: () => pool.withdraw(),
    stop: async (graceMs) => await pool.stop(graceMs),
  };
}

function trafficHere(plane: ReturnType<typeof createDataPlane>): Traffic {
  const { pipeline, listeners, metricsText, isReady, withdraw } = plane;
  return {
    get addresses() {
      return listeners.addresses;
    },
    listeners,
    metricsText,
    admin: { pipeline, isReady },
    // The first generation opened its listeners with its publication.
    start: async () => await Promise.resolve(),
    withdraw,
    stop: async (graceMs) => await listeners.stop(graceMs),
  };
}

type Control = ReturnType<typeof createControl>;

/** Generations, and the state that outlives them. */
export function createControl(parts: ProcessParts) {
  const { environment, log, clock, configFile, store } = parts;
  const events = new EventBus({ log, clock, ...(store === undefined ? {} : { outbox: store.outbox }) });
  const sink = parts.sink ?? events;
  const deadlines = new DeadlineSweep();
  const upstreams = new UpstreamRegistry({
    nowMs: () => clock.monotonic(),
    emit: (kind, payload) => sink.emit(kind, payload),
  });
  const pools = new EndpointPools(deadlines, (error) =>
    log.error({ err: error }, "A connection to an endpoint failed"),
  );
  const maintenance = new UpstreamMaintenance({ upstreams, pools, log });
  const { elsewhere, instance } = parts;
  const issued = new IssuedKeys(clock, parts.issued);
  const slices = createSlices({ log, clock, store, environment, elsewhere, instance, issued });
  const onlyListener = onlyListenerOf(environment);
  const history = new GenerationHistory(store, log);
  const generations = new Generations({
    slices: inGateOrder(slices.all),
    responseOrder: inResponseOrder(slices.all),
    compileTable: compileRouteTable,
    instance: parts.instance,
    compileActions: (document) => {
      const actions = compileActions(document, upstreams, pools);
      const published = (): void => {
        // Before the publication event, so that its envelope has the new name.
        events.rename(document.gateway.name ?? "gateway");
        actions.published();
        if (parts.hasTraffic !== false) maintenance.published();
      };
      return { ...actions, published };
    },
    checks: documentChecks(slices.all),
    clock,
    environment,
    events: sink,
    log,
    directory: dirname(configFile),
    ...(onlyListener === undefined ? {} : { onlyListener }),
    // Workers get the numbers from the control process, and have no history.
    ...(elsewhere === undefined ? { history } : {}),
    ...(parts.subscribers === undefined ? {} : { subscribers: parts.subscribers }),
    ...(parts.ownPart === undefined ? {} : { ownPart: parts.ownPart }),
  });
  const stop = async (): Promise<void> => {
    for (const slice of slices.all) await slice.stop?.();
    maintenance.stop();
    pools.stop();
    deadlines.stop();
  };
  return { events, deadlines, upstreams, pools, maintenance, slices, issued, generations, history, stop };
}

/** A name that is never found must not keep a gateway out of service whose other upstreams are reachable. */
const MAX_DISCOVERY_WAIT_MS = 30_000;

/** Creates request handling. */
export function createDataPlane({ environment, log, ...parts }: ProcessParts, control: Control) {
  const { slices, generations, pools, deadlines, maintenance } = control;
  let isWithdrawn = false;
  const startedMs = performance.now();
  let hasBeenReady = false;
  const isReady = (): boolean => {
    if (isWithdrawn || generations.current === undefined) return false;
    // Reloads do not take a serving gateway out of service.
    hasBeenReady ||= maintenance.hasEndpoints || performance.now() - startedMs >= MAX_DISCOVERY_WAIT_MS;
    return hasBeenReady;
  };
  const withdraw = (): void => void (isWithdrawn = true);
  const admission = new AdmissionControl({
    report: dryRunReport(log, "load_shed", (route) => slices.metrics.dryRun("load_shed", route)),
  });
  const pipeline = new Pipeline({
    pools,
    observers: slices.all.flatMap(({ observer }) => (observer === undefined ? [] : [observer])),
    reserved: (request) => reservedResponse(request, isReady, parts.scrape ?? metricsText),
    targetProblem,
    admission,
    log,
  });
  const metricsText = async (): Promise<string> =>
    await slices.metrics.text(await gatewayFacts({ ...control, pipeline, admission, listeners }));
  const services = connectionServices(generations, pipeline, deadlines, pools.buffers, environment, log);
  const { tickets, elsewhere } = parts;
  const sharesPorts = elsewhere !== undefined;
  const listeners = new ListenerSet({ services, environment, log, watch: watchAny, tickets, sharesPorts });
  return { pipeline, metricsText, listeners, isReady, withdraw };
}

/** Reports changes of a file without reading it. */
function watchAny(path: string, changed: () => void): { close(): Promise<void> } {
  return watchFile(path, undefined, async () => {
    changed();
    await Promise.resolve();
  });
}

/** How long the gateway continues after it is not ready any more. */
function withdrawalMs({ environment }: ProcessParts, generations: Generations): number {
  return (
    generations.current?.document.gateway.shutdown_delay_ms ??
    environmentNumber(environment, "GATEWAY_SHUTDOWN_DELAY_MS")
  );
}

/** How long requests may continue after the listeners closed. */
export function drainTimeMs({ environment }: ProcessParts, generations: Generations): number {
  return (
    generations.current?.document.gateway.shutdown_timeout_ms ??
    environmentNumber(environment, "GATEWAY_SHUTDOWN_TIMEOUT_SECS") * 1000
  );
}

/** Compiles the actions of routes, with upstreams that outlive generations. */
function compileActions(
  document: ConfigDocument,
  upstreams: UpstreamRegistry,
  pools: EndpointPools,
): Required<CompiledActions> {
  const compiled = new Map(
    document.upstreams.map((upstream) => [upstream.name, { document: upstream, group: upstreams.prepare(upstream) }]),
  );
  const services = new Map(
    document.services.map((service: Service) => [
      service.name,
      compileService(service, (name) => {
        const upstream = compiled.get(name);
        if (upstream === undefined) throw new Error(`There is no upstream ${name}`);
        return upstream;
      }),
    ]),
  );
  return {
    actionFor: (route: Route) => {
      if (route.action.type !== "proxy") return { kind: "response", response: compileResponseAction(route) };
      const choose = services.get(route.service ?? "");
      if (choose === undefined) throw new Error(`There is no service ${route.service}`);
      return {
        kind: "proxy",
        choose: (request) => choose({ requestId: request.requestId, cookie: (name) => cookieOf(request, name) }),
        rewrite: compileRewrite(route),
        changeFields: undefined,
      };
    },
    published: () => {
      upstreams.published(document.upstreams);
      pools.published(upstreams.all);
      pools.buffers.setMaxBytes(document.gateway.max_buffered_bytes ?? DEFAULT_BUFFERED_BYTES);
    },
  };
}

function cookieOf(request: RequestContext, name: string): string | undefined {
  for (const line of fieldValues(request.fields, "cookie")) {
    const found = parseCookies(line).find((cookie) => cookie.name === name);
    if (found !== undefined) return found.value;
  }
  return undefined;
}

/** Why a target may not be routed or forwarded; undefined if it may. */
function targetProblem(target: string): string | undefined {
  const verdict = checkPath(target);
  return verdict === "ok" ? undefined : `The path of the request cannot be used: ${verdict}`;
}

/** Responses for the gateway's own paths, before routing; `/metrics` only on listeners that have it. */
function reservedResponse(
  request: RequestContext,
  isReady: () => boolean,
  metricsText: () => Promise<string>,
): Response | undefined | Promise<Response> {
  switch (request.path) {
    case "/healthz":
      return envelope(200, "ok", "ok", request.requestId);
    case "/readyz":
      return isReady()
        ? envelope(200, "ready", "ready", request.requestId)
        : envelope(503, "not_ready", "not ready", request.requestId);
    case "/metrics":
      return hasMetrics(request) ? metricsResponse(metricsText()) : undefined;
    default:
      return undefined;
  }
}

/** By the running document, not the one of the connection. */
function hasMetrics({ generation, listener }: RequestContext): boolean {
  return generation.document.listeners.some(({ name, metrics }) => name === listener.name && metrics === true);
}

async function metricsResponse(text: Promise<string>): Promise<Response> {
  return { status: 200, fields: ["Content-Type", "text/plain; version=0.0.4; charset=utf-8"], body: await text };
}

function envelope(status: number, code: string, message: string, requestId: string): Response {
  const error = { code, message, request_id: requestId };
  return { status, fields: ["Content-Type", "application/json"], body: JSON.stringify({ error }) };
}

/** Creates the services with which listeners turn heads into requests of the running generation. */
function connectionServices(
  generations: Generations,
  pipeline: Pipeline,
  deadlines: DeadlineSweep,
  buffers: BufferBudget,
  environment: Readonly<Record<string, string | undefined>>,
  log: Logger,
): ConstructorParameters<typeof ListenerSet>[0]["services"] {
  return {
    deadlines,
    buffers,
    onDefect: (error) => log.error({ err: error }, "A connection of a client failed"),
    limits: {
      fieldCount: environmentNumber(environment, "GATEWAY_HTTP1_MAX_HEADERS"),
      headBytes: environmentNumber(environment, "GATEWAY_HTTP1_MAX_HEADER_BYTES"),
    },
    request: (head, listener, peer, nowMs, stream) => {
      const generation = generations.current;
      if (generation === undefined) throw new Error("A listener accepted a request before a generation was published");
      const sentTarget = head.targetForm === "absolute" ? originForm(head.target) : head.target;
      const request = new RequestContext({
        generation,
        listener,
        peer,
        startedMs: nowMs,
        version: stream.version,
        method: head.method,
        target: canonicalTarget(asciiTarget(sentTarget)),
        sentTarget,
        authority: head.authority,
        fields: head.fields,
        framing: head.framing,
        upgrade: head.upgrade,
      });
      pipeline.handle(request, stream);
    },
    refusal: (code, message, listener, peer) => {
      const requestId = newRequestId();
      const response = errorResponse(message === undefined ? { code } : { code, message }, requestId);
      const body = String(response.body);
      const fields = [...response.fields];
      const generation = generations.current;
      (generation?.requestIdField ?? X_REQUEST_ID).pushIds(fields, { requestId, correlationId: requestId });
      if (generation !== undefined) {
        const request = unreadRequest(generation, listener, peer, requestId);
        pipeline.refused(request, response.status, code, Buffer.byteLength(body));
      }
      return { status: response.status, reason: reasonPhrase(response.status), fields, body };
    },
  };
}

/** Placeholder for a malformed request, none of whose data is trusted. */
function unreadRequest(generation: Generation, listener: ListenerFacts, peer: Peer, requestId: string): RequestContext {
  const request = new RequestContext({
    generation,
    listener,
    peer,
    startedMs: performance.now(),
    version: "1.1",
    method: "",
    target: "",
    authority: undefined,
    fields: [],
    framing: NO_BODY,
  });
  request.requestId = requestId;
  request.correlationId = requestId;
  return request;
}

/** Path and query of `http://host/path?query`; the authority is already extracted. */
function originForm(target: string): string {
  const pathAt = target.indexOf("/", target.indexOf("://") + 3);
  const queryAt = target.indexOf("?");
  if (pathAt !== -1 && (queryAt === -1 || pathAt < queryAt)) return target.slice(pathAt);
  return queryAt === -1 ? "/" : `/${target.slice(queryAt)}`;
}

/** Applies published generations to the listeners of this process. `graceMs`: for removed listeners. */
export function listenerFollowers(
  listeners: () => ListenerSet | undefined,
  graceMs: () => number,
): GenerationSubscribers {
  return {
    prepare: async (_candidate, reading) => {
      const problems = (await listeners()?.prepare(reading.document.listeners)) ?? [];
      return listenerIssues(problems, reading);
    },
    publish: async () => await listeners()?.take(graceMs()),
    discard: () => void listeners()?.discard(),
  };
}

/** Turns listener problems into issues of the document. */
function listenerIssues(problems: readonly ListenerProblem[], { positions }: CheckedReading): Issue[] {
  return problems.map(({ at, message }) => ({
    code: "compile_failed",
    ...positions.locate(["listeners", at]),
    message,
    severity: "error",
  }));
}
