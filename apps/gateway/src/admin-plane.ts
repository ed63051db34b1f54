// Tested by ../test/admin.test.ts
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Admin } from "@headworks/gateway-contract";
import { isLoopback } from "@headworks/host-patterns";
import type { Logger } from "pino";
import { openAdminServer, type AdminServer } from "#admin/admin-server.ts";
import { auditInto, openAuditLog } from "#admin/audit-log.ts";
import { configOperations } from "#admin/config-operations.ts";
import { runtimeOperations } from "#admin/runtime-operations.ts";
import { parseBind } from "#config/check-listeners.ts";
import { editorSchema } from "#config/json-schema.ts";
import { replaceFile } from "#config/watch-file.ts";
import { hashText, redactedDocument, toJson, toYaml } from "#config/write-document.ts";
import { newRequestId } from "#request/request-id.ts";
import { explainRoute } from "#routing/explain.ts";
import { usageJson } from "#slices/quotas/quotas.slice.ts";
import type { EndpointPools } from "#upstream/endpoint-pools.ts";
import type { FactSources } from "./gateway-facts.ts";
import type { Clock } from "./slice.ts";

/** The version of Sluice. */
export const VERSION = "0.1.0";
const DEFAULT_BIND = "127.0.0.1:2019";

/** What the admin API stands on. */
export interface AdminPlaneParts extends FactSources {
  readonly admin: Admin;
  readonly configFile: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly pools: EndpointPools;
  readonly metricsText: () => Promise<string>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The admin section asks for something that is not served. */
class AdminPlaneError extends Error {}

/**
 * Opens the admin API: over TLS with client certificates, or in plain text for development, which `GATEWAY_ADMIN_DEV=1`
 * asks for and only a loopback address gets. Throws an error with a sentence for what its operator can mend.
 */
export async function openAdminPlane(parts: AdminPlaneParts): Promise<AdminServer> {
  const { admin, configFile, environment, pools, generations, log, clock } = parts;
  const bind = parseBind(admin.bind ?? DEFAULT_BIND);
  if (bind === undefined) throw new AdminPlaneError(`admin.bind is no address and port: ${admin.bind}`);
  const place = (path: string): string => resolve(dirname(configFile), path);
  const auditPath = admin.audit_log?.path;
  const nowMs = (): number => clock.now();
  return await openAdminServer({
    bind: { host: bind.address, port: bind.port },
    tls: tlsOf(admin, bind.address, environment["GATEWAY_ADMIN_DEV"] === "1", place),
    roles: () => generations.current?.document.admin?.roles,
    audit: auditPath === undefined ? auditInto(log) : openAuditLog(place(auditPath), log, nowMs),
    newRequestId,
    version: VERSION,
    log,
    handlers: {
      ...configOperations({
        generations,
        persist: async (text) => await replaceFile(configFile, text),
        documents: {
          toYaml: (document) => toYaml(document as Parameters<typeof toYaml>[0]),
          toJson,
          redacted: (document) => redactedDocument(document as Parameters<typeof toYaml>[0]),
          hashText,
          schema: editorSchema,
        },
        explain: (asked) => explainRoute({ routes: generations.current?.document.routes ?? [] }, asked),
      }),
      ...runtimeOperations({
        quotas: parts.slices.quotas,
        usageJson,
        usageExport: parts.slices.usageExport,
        webhooks: parts.slices.webhooks,
        journal: parts.events.journal,
        upstreams: () => parts.upstreams.all,
        openConnections: ({ endpoints }) =>
          new Map(endpoints.map((endpoint) => [endpoint.key, pools.openConnections(endpoint)])),
        activeRequests: () => parts.pipeline.activeRequests,
        generation: () => generations.current?.number ?? 0,
        metricsText: parts.metricsText,
        version: VERSION,
        startedMs: nowMs(),
        nowMs,
      }),
    } as unknown as Parameters<typeof openAdminServer>[0]["handlers"],
  });
}

function tlsOf(
  { tls }: Admin,
  host: string,
  isDevelopment: boolean,
  place: (path: string) => string,
): { cert: Buffer; key: Buffer; ca: Buffer } | undefined {
  if (tls !== undefined) {
    const read = (path: string): Buffer => readFileSync(place(path));
    return { cert: read(tls.cert_file), key: read(tls.key_file), ca: read(tls.client_ca_file) };
  }
  const isLocal = host === "localhost" || isLoopback(host);
  if (isDevelopment && isLocal) return undefined;
  throw new AdminPlaneError(
    isDevelopment
      ? `GATEWAY_ADMIN_DEV=1 serves loopback addresses only, and admin.bind is ${host}`
      : "admin.tls is missing: the admin API asks for client certificates. For development on this machine set GATEWAY_ADMIN_DEV=1",
  );
}
