// Tested by ../test/pipeline.test.ts
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { ConfigDocument, Issue, Route, Service } from "@headworks/gateway-contract";
import { parseCookies, reasonPhrase } from "@headworks/http-fields";
import { fieldValues } from "@headworks/http1";
import { DeadlineSweep } from "@headworks/sockets";
import type { Logger } from "pino";
import { Generations, type SubmitOutcome } from "#config/generations.ts";
import { watchFile } from "#config/watch-file.ts";
import { numberOf, ListenerSet } from "#listener/listener-set.ts";
import { AdmissionControl } from "#request/admission.ts";
import { RequestContext } from "#request/context.ts";
import { dryRunReport } from "#request/dry-run-report.ts";
import { EventBus } from "#events/event-bus.ts";
import { errorAnswer } from "#request/error-answer.ts";
import type { CompiledAction, Generation } from "#request/generation.ts";
import type { Answer } from "#request/phases.ts";
import { Pipeline } from "#request/pipeline.ts";
import { newRequestId } from "#request/request-id.ts";
import { compileAnswerAction } from "#routing/actions.ts";
import { checkRoutes } from "#routing/check-routes.ts";
import { checkPath } from "#routing/request-path.ts";
import { compileRewrite } from "#routing/rewrite.ts";
import { compileRouteTable } from "#routing/route-table.ts";
import { openStateStore } from "#storage/open-state-store.ts";
import type { StateStore } from "#storage/state-store.ts";
import { EndpointPools } from "#upstream/endpoint-pools.ts";
import { compileService } from "#upstream/service-choice.ts";
import { UpstreamRegistry } from "#upstream/upstream-registry.ts";
import { systemClock } from "./clock.ts";
import { openAdminPlane } from "./admin-plane.ts";
import { gatewayFacts } from "./gateway-facts.ts";
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

const DRAIN_MS = 10_000;

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
  const { environment, log, clock, configFile, store } = parts;
  const events = new EventBus({ log, clock, ...(store === undefined ? {} : { outbox: store.outbox }) });
  const deadlines = new DeadlineSweep();
  const upstreams = new UpstreamRegistry({
    nowMs: () => clock.monotonic(),
    emit: (kind, payload) => events.emit(kind, payload),
  });
  const pools = new EndpointPools(deadlines);
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
      };
      return { ...actions, published };
    },
    checks: [checkRoutes, ...slices.all.flatMap(({ check }) => (check === undefined ? [] : [check]))],
    clock,
    environment,
    events,
    log,
    directory: dirname(configFile),
    ...(store === undefined ? {} : { archive: store }),
  });
  const metricsText = async (): Promise<string> =>
    await slices.metrics.text(await gatewayFacts({ generations, pipeline, upstreams, events, slices }));
  const admission = new AdmissionControl({
    report: dryRunReport(log, "load_shed", (route) => slices.metrics.dryRun("load_shed", route)),
  });
  const pipeline = new Pipeline({
    pools,
    observers: slices.all.flatMap(({ observer }) => (observer === undefined ? [] : [observer])),
    reserved: (request) => reservedAnswer(request, generations, metricsText),
    targetProblem,
    admission,
    log,
  });
  const listeners = new ListenerSet({
    services: connectionServices(generations, pipeline, deadlines, environment),
    environment,
    log,
  });
  const firstText = readFileSync(configFile, "utf8");
  const reload = async (force: boolean): Promise<SubmitOutcome> =>
    await generations.submit({ text: readFileSync(configFile, "utf8"), source: "reload" }, { force });
  const first = await generations.submit({ text: firstText, source: "startup" });
  if (first.outcome !== "published" || generations.current === undefined) {
    await events.stop();
    throw new RejectedDocumentError(first.outcome === "rejected" ? first.issues : []);
  }
  events.start(slices.webhooks);
  const { admin } = generations.current.document;
  const sources = { generations, pipeline, upstreams, events, slices };
  const adminServer =
    admin === undefined
      ? undefined
      : await openAdminPlane({ ...sources, admin, configFile, environment, pools, metricsText, clock, log });
  await listeners.open(generations.current.document.listeners);
  const watch = watchFile(configFile, firstText, async (outcome) => {
    if (outcome.ok) await reload(false);
    else log.error({ code: "config_unreadable", why: outcome.why }, "The configuration's file cannot be read");
  });
  const graceMs = (): number =>
    generations.current?.document.gateway.shutdown_timeout_ms ??
    numberOf(environment["GATEWAY_SHUTDOWN_TIMEOUT_SECS"], DRAIN_MS / 1000) * 1000;
  generations.onPublished((generation) => void listeners.follow(generation.document.listeners, graceMs()));
  return {
    generations,
    get addresses() {
      return listeners.addresses;
    },
    adminUrl: adminServer?.url,
    reload: async (force) => await reload(force),
    stop: async (limitMs = graceMs()) => {
      await watch.close();
      await listeners.stop(limitMs);
      await adminServer?.stop(limitMs);
      await generations.settled();
      await events.stop();
      for (const slice of slices.all) await slice.stop?.();
      pools.stop();
      deadlines.stop();
      await store?.close();
    },
  };
}

function targetProblem(target: string): string | undefined {
  const verdict = checkPath(target);
  return verdict === "ok" ? undefined : `The path of the request cannot be used: ${verdict}`;
}

/** Paths of the gateway itself, on every listener, before any route. */
function reservedAnswer(
  request: RequestContext,
  generations: Generations,
  metricsText: () => Promise<string>,
): Answer | undefined | Promise<Answer> {
  switch (request.path) {
    case "/healthz":
      return envelope(200, "ok", "ok", request.requestId);
    case "/readyz":
      return generations.current === undefined
        ? envelope(503, "not_ready", "not ready", request.requestId)
        : envelope(200, "ready", "ready", request.requestId);
    case "/metrics":
      return metricsAnswer(metricsText());
    default:
      return undefined;
  }
}

async function metricsAnswer(text: Promise<string>): Promise<Answer> {
  return { status: 200, fields: ["Content-Type", "text/plain; version=0.0.4; charset=utf-8"], body: await text };
}

function envelope(status: number, code: string, message: string, requestId: string): Answer {
  const error = { code, message, request_id: requestId };
  return { status, fields: ["Content-Type", "application/json"], body: JSON.stringify({ error }) };
}

function connectionServices(
  generations: Generations,
  pipeline: Pipeline,
  deadlines: DeadlineSweep,
  environment: GatewayOptions["environment"],
): ConstructorParameters<typeof ListenerSet>[0]["services"] {
  return {
    deadlines,
    limits: {
      fieldCount: numberOf(environment["GATEWAY_HTTP1_MAX_HEADERS"], 100),
      headBytes: numberOf(environment["GATEWAY_HTTP1_MAX_HEADER_BYTES"], 65_536),
    },
    request: (head, listener, peer, nowMs, stream) => {
      const generation = generations.current;
      if (generation === undefined) throw new Error("A listener is open before a generation was published");
      const request = new RequestContext({
        generation,
        listener,
        peer,
        startedMs: nowMs,
        version: head.version,
        method: head.method,
        target: head.targetForm === "absolute" ? originForm(head.target) : head.target,
        authority: head.authority,
        fields: head.fields,
        framing: head.framing,
        upgrade: head.upgrade,
      });
      pipeline.handle(request, stream);
    },
    refusal: (code, message) => {
      const requestId = newRequestId();
      const answer = errorAnswer(message === undefined ? { code } : { code, message }, requestId);
      return {
        status: answer.status,
        reason: reasonPhrase(answer.status),
        fields: [...answer.fields, "X-Request-Id", requestId],
        body: String(answer.body),
      };
    },
  };
}

/** Path and query of `http://host/path?query`; the authority was taken from it already. */
function originForm(target: string): string {
  const pathAt = target.indexOf("/", target.indexOf("://") + 3);
  const queryAt = target.indexOf("?");
  if (pathAt !== -1 && (queryAt === -1 || pathAt < queryAt)) return target.slice(pathAt);
  return queryAt === -1 ? "/" : `/${target.slice(queryAt)}`;
}

function compileActions(
  document: ConfigDocument,
  upstreams: UpstreamRegistry,
  pools: EndpointPools,
): { actionFor: (route: Route) => CompiledAction; published: () => void } {
  const groups = new Map(document.upstreams.map((upstream) => [upstream.name, upstreams.prepare(upstream)]));
  const services = new Map(
    document.services.map((service: Service) => [
      service.name,
      compileService(service, (name) => {
        const group = groups.get(name);
        if (group === undefined) throw new Error(`There is no upstream ${name}`);
        return group;
      }),
    ]),
  );
  return {
    actionFor: (route) => {
      if (route.action.type !== "proxy") return { kind: "answer", answer: compileAnswerAction(route) };
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
