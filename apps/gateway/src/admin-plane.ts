import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { DEFAULT_ADMIN_BIND, type Admin, type DocumentInput } from "@headworks/gateway-contract";
import { isLoopback } from "@headworks/host-patterns";
import type { Logger } from "pino";
import { openAdminServer, type AdminServer } from "#admin/admin-server.ts";
import { auditInto, openAuditLog } from "#admin/audit-log.ts";
import { credentialOperations } from "#admin/credential-operations.ts";
import { configOperations, type ConfigParts } from "#admin/config-operations.ts";
import { eventOperations, EventStreams } from "#admin/event-operations.ts";
import { runtimeOperations, usageOf } from "#admin/runtime-operations.ts";
import { readTlsMaterial, TlsFollower, type FollowParts } from "#admin/tls-material.ts";
import { parseBind } from "#config/check-listeners.ts";
import type { GenerationHistory } from "#config/generations.ts";
import { editorSchema } from "#config/json-schema.ts";
import { hashText, maskSecrets, redactedDocument, toJson, toYaml } from "#config/write-document.ts";
import { patchedTextSteps, saysSteps } from "#config/patched-text.ts";
import { inTurns } from "#config/steps.ts";
import { readConfigFile, replaceFile, watchFile } from "#config/watch-file.ts";
import { requestIdFor } from "#request/forwarding-rules.ts";
import { explainRoute } from "#routing/explain.ts";
import { IssuedCredentials, type IssuedKeys } from "#slices/consumers/consumers.slice.ts";
import { usageJson } from "#slices/quotas/quotas.slice.ts";
import type { StateStore } from "#storage/state-store.ts";
import type { EndpointPools } from "#upstream/endpoint-pools.ts";
import { forceState, upstreamSnapshots } from "#upstream/upstream-registry.ts";
import type { FactSources } from "./gateway-facts.ts";
import type { Clock } from "./slice.ts";
import manifest from "../package.json" with { type: "json" };

const VERSION = manifest.version;

/** Explained while no document runs. */
const NOTHING = { routes: [], listeners: [] };

export interface AdminPlaneParts extends Omit<FactSources, "listeners" | "admission"> {
  readonly admin: Admin;
  readonly configFile: string;
  /** The file was written with this text. */
  readonly onWritten: (text: string) => void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly pools: EndpointPools;
  readonly history: GenerationHistory;
  /** Undefined without `GATEWAY_STATE_DB`. */
  readonly store: StateStore | undefined;
  readonly issued: IssuedKeys;
  /** Whether load balancers should send clients here. */
  readonly isReady: () => boolean;
  /** Set if other processes handle requests. */
  readonly traffic?: Traffic;
  readonly metricsText: () => Promise<string>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** State of requests and upstreams for operators, and their changes. */
export type Traffic = Pick<
  Parameters<typeof runtimeOperations>[0],
  "upstreams" | "recent" | "force" | "purge" | "activeRequests"
>;

function trafficHere({ upstreams, pools, pipeline, slices }: AdminPlaneParts): Traffic {
  const { cache, metrics } = slices;
  return {
    upstreams: () => upstreamSnapshots(upstreams, (endpoint) => pools.openConnections(endpoint)),
    recent: () => metrics.recent(),
    force: (forced) => forceState(upstreams, forced),
    purge: (route) => {
      if (route === undefined) return cache.purgeAll();
      return cache.purge(route) === undefined ? 0 : 1;
    },
    activeRequests: () => pipeline.activeRequests,
  };
}

/** The admin section cannot be served. */
class AdminPlaneError extends Error {}

/**
 * Opens the admin API: over TLS with client certificates, or in plain text for development on a loopback address with
 * `GATEWAY_ADMIN_DEV=1`. Throws an error with a sentence for problems that the operator can fix.
 */
export async function openAdminPlane(parts: AdminPlaneParts): Promise<AdminServer> {
  const { admin, configFile, environment, generations, log, clock } = parts;
  const bind = parseBind(admin.bind ?? DEFAULT_ADMIN_BIND);
  if (bind === undefined) throw new AdminPlaneError(`admin.bind is no address and port: ${admin.bind}`);
  const resolvePath = (path: string): string => resolve(dirname(configFile), path);
  const auditPath = admin.audit_log?.path;
  const nowMs = (): number => clock.now();
  const startedMs = clock.monotonic();
  const isDevelopment = environment["GATEWAY_ADMIN_DEV"] === "1";
  if (admin.tls === undefined) refuseOpenDoors(bind.address, isDevelopment);
  const audit = auditPath === undefined ? auditInto(log, nowMs) : openAuditLog(resolvePath(auditPath), log, nowMs);
  const traffic = parts.traffic ?? trafficHere(parts);
  const streams = new EventStreams(parts.events.journal);
  const server = await openAdminServer({
    bind: { host: bind.address, port: bind.port },
    tls: admin.tls === undefined ? undefined : readTlsMaterial(admin.tls, resolvePath),
    roles: bindingsInForce(admin, generations),
    audit,
    stopping: () => streams.close(),
    renewed: () => streams.cut(),
    requestIdFor,
    version: VERSION,
    log,
    handlers: {
      ...configOperations({
        generations,
        history: parts.history,
        recent: traffic.recent,
        persist: async (text) => {
          await replaceFile(configFile, text);
          parts.onWritten(text);
        },
        written: async () => {
          const file = await readConfigFile(configFile);
          return file.ok ? file.text : undefined;
        },
        documents: documentForms,
        usage: async (consumer) => {
          const { consumers } = await usageOf(async () => await parts.slices.quotas.usageRecord(consumer));
          return { ...consumers[0] };
        },
        explain: (requested) => explainRoute(generations.current?.document ?? NOTHING, requested),
      }),
      ...eventOperations({ events: parts.events, webhooks: parts.slices.webhooks, streams, audit }),
      ...credentialOperations(
        new IssuedCredentials({
          store: parts.store,
          keys: parts.issued,
          consumers: () => generations.current?.document.consumers ?? [],
          isInDocument: (key) => parts.slices.consumers.hasKey(key),
          clock,
          log,
        }),
        nowMs,
      ),
      ...runtimeOperations({
        quotas: parts.slices.quotas,
        usageJson,
        usageExport: parts.slices.usageExport,
        ...traffic,
        isReady: parts.isReady,
        generation: () => generations.current?.number ?? 0,
        metricsText: parts.metricsText,
        version: VERSION,
        uptimeMs: () => clock.monotonic() - startedMs,
      }),
    } as unknown as Parameters<typeof openAdminServer>[0]["handlers"],
  });
  return admin.tls === undefined ? server : followed(server, admin.tls, { resolvePath, generations, log });
}

/** Roles of the last document with an admin section: without one no more clients are admitted. */
function bindingsInForce(admin: Admin, generations: AdminPlaneParts["generations"]): () => Admin["roles"] {
  let latest = admin;
  generations.onPublished(({ document }) => {
    latest = document.admin ?? latest;
  });
  return () => (generations.current?.document.admin ?? latest).roles;
}

const documentForms: ConfigParts["documents"] = {
  toYaml: (document) => toYaml(document as Parameters<typeof toYaml>[0]),
  toJson,
  patchedText: async (text, before, after) => await inTurns(patchedTextSteps(text, before as DocumentInput, after)),
  says: async (text, document) => await inTurns(saysSteps(text, document as DocumentInput)),
  masked: (document) => maskSecrets(document as DocumentInput),
  redacted: (document) => redactedDocument(document as Parameters<typeof toYaml>[0]),
  hashText,
  schema: editorSchema,
};

/** The server, with its certificate files watched until it stops. */
function followed(
  server: AdminServer,
  files: NonNullable<Admin["tls"]>,
  { resolvePath, generations, log }: Pick<AdminPlaneParts, "generations" | "log"> & Pick<FollowParts, "resolvePath">,
): AdminServer {
  const subscriber = new TlsFollower(files, {
    resolvePath,
    watch: (path, changed) => watchFile(path, readFileSync(path, "utf8"), async () => await Promise.resolve(changed())),
    renew: (material) => server.renew(material),
    log,
  });
  const forget = generations.onPublished(({ document }) => {
    if (document.admin?.tls === undefined) return;
    subscriber.follow(document.admin.tls).catch((error: unknown) => {
      log.error({ err: error, code: "admin_tls_kept" }, "The admin API's certificate is not followed any more");
    });
  });
  return {
    ...server,
    stop: async (graceMs) => {
      forget();
      await subscriber.close();
      await server.stop(graceMs);
    },
  };
}

function refuseOpenDoors(host: string, isDevelopment: boolean): void {
  if (isDevelopment && (host === "localhost" || isLoopback(host))) return;
  throw new AdminPlaneError(
    isDevelopment
      ? `GATEWAY_ADMIN_DEV=1 serves loopback addresses only, and admin.bind is ${host}`
      : "admin.tls is missing: the admin API asks for client certificates. For development on this machine set GATEWAY_ADMIN_DEV=1",
  );
}
