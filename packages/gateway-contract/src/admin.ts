import type { Static } from "typebox";
import { defineOperations, media, oneOf, strictObject, Type, upload } from "@headworks/contract-kit";
import { ISSUE_CODES } from "./issues.ts";
import { EVENT_KINDS, Name } from "./primitives.ts";

const IssueItem = strictObject({
  code: Type.String(),
  path: Type.String(),
  message: Type.String(),
  severity: oneOf(["error", "warning"]),
  line: Type.Optional(Type.Integer()),
  column: Type.Optional(Type.Integer()),
  count: Type.Optional(Type.Integer({ description: "Number of issues that `more_issues` represents" })),
});

const ChangeItem = strictObject({
  kind: Type.String(),
  name: Type.String(),
  change: oneOf(["added", "removed", "changed", "moved"]),
  pointers: Type.Array(Type.String({ description: "JSON pointers to the changes" })),
});

const routeTraffic = {
  span_seconds: Type.Integer({ description: "Period of the counts: an hour, or since the start" }),
  requests: Type.Integer({ description: "Finished requests of all routes in this period" }),
  routes: Type.Array(
    strictObject({
      name: Type.String(),
      requests: Type.Integer({ description: "Finished requests of this route; 0 for a new one" }),
      share: Type.Number({ description: "Of the requests of all routes, 0 to 1" }),
    }),
  ),
} as const;

/** Recent traffic of routes. */
const Traffic = strictObject(routeTraffic, { $id: "RouteTraffic" });

export type RouteTraffic = Static<typeof Traffic>;

const Affected = strictObject(
  {
    ...routeTraffic,
    consumers: Type.Array(Type.String()),
    upstreams: Type.Array(Type.String()),
    rebound_listeners: Type.Array(Type.String({ description: "Listeners whose connections would end" })),
  },
  { $id: "AffectedByPlan", description: "Affected entities and their recent requests" },
);

export type AffectedByPlan = Static<typeof Affected>;

/** The outcome of a publication or a dry run. */
const Published = strictObject(
  {
    generation: Type.Integer(),
    content_hash: Type.Integer(),
    route_count: Type.Integer(),
    warnings: Type.Array(IssueItem),
    changes: Type.Optional(Type.Array(ChangeItem)),
    affected: Type.Optional(Affected),
  },
  { $id: "PublishedConfig" },
);

export type PublishedConfig = Static<typeof Published>;

const Time = Type.String({ format: "date-time" });

/** API keys issued and retired at run time. */
const credentialOperations = {
  listCredentials: {
    method: "GET",
    path: "/consumers/{consumer}/credentials",
    summary: "API keys issued to a consumer, besides those in the document",
    description: "Without the keys themselves. Retired keys are deleted after 30 days.",
    access: "credentials:read",
    params: strictObject({ consumer: Name }),
    responses: {
      200: strictObject({
        consumer: Type.String(),
        credentials: Type.Array(
          strictObject({
            id: Type.String(),
            kind: oneOf(["api_key"]),
            created_at: Time,
            revoked_at: Type.Union([Time, Type.Null()], { description: "End of validity; null while valid" }),
            retire_at: Type.Union([Time, Type.Null()], { description: "Requested end of validity" }),
          }),
        ),
      }),
    },
  },
  issueCredential: {
    method: "POST",
    path: "/consumers/{consumer}/credentials",
    summary: "Issue an API key to a consumer, valid immediately in every worker",
    description:
      "Without `key` one is generated, and only this response contains it. Existing keys of the consumer stay valid.",
    access: "credentials:write",
    params: strictObject({ consumer: Name }),
    body: strictObject({
      key: Type.Optional(
        Type.String({ minLength: 1, maxLength: 1024, description: "16 to 512 visible ASCII characters" }),
      ),
    }),
    bodyOptional: true,
    responses: {
      201: strictObject({
        consumer: Type.String(),
        credential_id: Type.String(),
        created_at: Time,
        key: Type.Optional(Type.String({ description: "The generated key" })),
        note: Type.String(),
      }),
    },
  },
  retireCredential: {
    method: "POST",
    path: "/credentials/{credential}/retire",
    summary: "Retire an issued key, now or at a given time",
    access: "credentials:write",
    params: strictObject({ credential: Type.String({ minLength: 1, maxLength: 64 }) }),
    body: strictObject({
      at_ms: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 8_640_000_000_000_000,
          description: "Milliseconds since 1970. Default: now",
        }),
      ),
    }),
    bodyOptional: true,
    responses: {
      200: strictObject({
        credential_id: Type.String(),
        retire_at: Time,
        effective: oneOf(["immediate", "scheduled"]),
      }),
    },
  },
} as const;

const AdminErrorBody = strictObject(
  {
    error: strictObject({
      code: Type.String({ description: "Stable code for programs" }),
      message: Type.String({ description: "A readable sentence" }),
      request_id: Type.String(),
      issues: Type.Optional(
        Type.Array(
          strictObject({
            code: oneOf([...ISSUE_CODES]),
            path: Type.String({ description: "JSON pointer" }),
            message: Type.String(),
            severity: oneOf(["error", "warning"]),
            line: Type.Optional(Type.Integer()),
            column: Type.Optional(Type.Integer()),
            count: Type.Optional(Type.Integer({ description: "Number of issues that `more_issues` represents" })),
          }),
        ),
      ),
    }),
  },
  { $id: "AdminError" },
);

export const adminApiInfo = {
  title: "Sluice admin API",
  version: "0.1.0",
  description: "Reads and changes a running gateway, over client certificates",
  prefix: "",
  error: AdminErrorBody,
};

const GenerationItem = strictObject({
  generation: Type.Integer(),
  content_hash: Type.Integer(),
  route_count: Type.Integer(),
  published_at: Type.String({ format: "date-time" }),
  source: Type.String(),
  actor: Type.Union([Type.String(), Type.Null()]),
  is_running: Type.Boolean(),
});

const CONFIG_TYPES = [
  "application/yaml",
  "application/json",
  "application/merge-patch+json",
  "application/json-patch+json",
];

const Delivery = strictObject(
  {
    id: Type.String({ description: "Id of the event" }),
    kind: Type.String(),
    outcome: oneOf(["delivered", "failed", "interrupted"]),
    attempts: Type.Integer(),
    status: Type.Union([Type.Integer(), Type.Null()], { description: "Status of the last response" }),
    reason: Type.String(),
  },
  { $id: "Delivery" },
);

/** JSON numbers are exact up to here. */
const MAX_DELTA = Number.MAX_SAFE_INTEGER;
const Anything = Type.Unsafe<Readonly<Record<string, unknown>>>({ type: "object" });
const replaceQuery = strictObject({ dry_run: Type.Optional(Type.Boolean()), overwrite: Type.Optional(Type.Boolean()) });
const ifMatch = { "If-Match": "Content hash as in ETag: responds with 412 if another configuration is running" };

const entities = (name: "routes" | "services" | "consumers" | "policies") =>
  ({
    method: "GET",
    path: `/${name}`,
    summary: `The ${name} of the running configuration, inline secrets redacted`,
    access: "config:read",
    responses: {
      200: media("application/json", `An object with the list \`${name}\`; numbers are exact 64-bit integers`),
    },
  }) as const;

/** Operations of the admin API. Viewers can read, operators can also manage the runtime, admins can do everything. */
export const adminOperations = defineOperations({
  getConfig: {
    method: "GET",
    path: "/config",
    summary: "The running configuration, normalized, with inline secrets redacted",
    description: "YAML, or JSON if requested in Accept. ETag is the content hash.",
    access: "config:read",
    responses: { 200: media("application/yaml", "The document", ["application/json"]) },
  },
  patchConfig: {
    method: "PATCH",
    path: "/config",
    summary: "Publish a complete document or a patch of the running one",
    description:
      "`application/yaml`, `application/json` or no type: a complete document. `application/merge-patch+json` (RFC 7396) and `application/json-patch+json` (RFC 6902): a patch. Responds with 409 if the configuration file has unpublished edits, unless `overwrite=true`.",
    access: "config:write",
    requestFields: ifMatch,
    query: replaceQuery,
    body: upload(CONFIG_TYPES, "A document or a patch, at most 4 MiB"),
    responses: { 200: Published },
  },
  putConfig: {
    method: "PUT",
    path: "/config",
    summary: "Publish a complete document",
    description: "Responds with 409 if the configuration file has unpublished edits, unless `overwrite=true`.",
    access: "config:write",
    requestFields: ifMatch,
    query: replaceQuery,
    body: upload(CONFIG_TYPES.slice(0, 2), "A document, at most 4 MiB"),
    responses: { 200: Published },
  },
  validateConfig: {
    method: "POST",
    path: "/config/validate",
    summary: "Validate a document",
    access: "config:read",
    body: upload(CONFIG_TYPES.slice(0, 2), "A document, at most 4 MiB"),
    responses: { 200: strictObject({ valid: Type.Boolean(), issues: Type.Array(IssueItem) }) },
  },
  planConfig: {
    method: "POST",
    path: "/config/plan",
    summary: "Show what a document would change and how many recent requests are affected",
    description:
      "Counts requests completed in the last hour by route. Requests that a new route would take over from others are not estimated.",
    access: "config:read",
    body: upload(CONFIG_TYPES, "A document or a patch, at most 4 MiB"),
    responses: { 200: Published },
  },
  listGenerations: {
    method: "GET",
    path: "/config/generations",
    summary: "Published configurations, newest first",
    description: "The last 100. Kept across restarts if there is a state store.",
    access: "config:read",
    query: strictObject({ limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })) }),
    responses: { 200: strictObject({ generations: Type.Array(GenerationItem) }) },
  },
  getGeneration: {
    method: "GET",
    path: "/config/generations/{generation}",
    summary: "A published configuration, with inline secrets redacted",
    description: "YAML, or JSON if requested in Accept. ETag is the content hash.",
    access: "config:read",
    params: strictObject({ generation: Type.Integer({ minimum: 1 }) }),
    responses: { 200: media("application/yaml", "The document", ["application/json"]) },
  },
  rollbackConfig: {
    method: "POST",
    path: "/config/rollback",
    summary: "Publish an earlier configuration again",
    description:
      "Responds with 409 if the configuration file has unpublished edits, unless `overwrite=true`, and with 400 if the configuration now has errors. Inline secrets are not stored: those that the running configuration also contains are restored; others make the rollback fail with `config_redacted_value`.",
    access: "config:write",
    query: strictObject({ overwrite: Type.Optional(Type.Boolean()) }),
    body: strictObject({ generation: Type.Integer({ minimum: 1 }) }),
    responses: { 200: Published },
  },
  getConfigSchema: {
    method: "GET",
    path: "/config/schema",
    summary: "JSON Schema of the document, for editors",
    access: "public",
    responses: { 200: media("application/json", "JSON Schema 2020-12; bounds are exact 64-bit integers") },
  },
  explain: {
    method: "POST",
    path: "/explain",
    summary: "Show which route a request matches, and the result of each match condition",
    description:
      "`gate` is a response before the route's action: the route is under maintenance, does not allow the method, or requires a credential that the request lacks.",
    access: "config:read",
    body: strictObject({
      method: Type.Optional(Type.String()),
      path: Type.String({ minLength: 1, description: "Path, optionally with a query" }),
      host: Type.Optional(Type.String()),
      listener: Type.Optional(Type.String({ description: "Name of the listener. Default: the first one" })),
      scheme: Type.Optional(oneOf(["http", "https"], { description: "Default: that of the listener" })),
      headers: Type.Optional(Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())]))),
      consumer: Type.Optional(
        Type.String({
          description: "A consumer with quotas; the response includes its budgets and what remains of them",
        }),
      ),
    }),
    responses: {
      200: media("application/json", "The explanation; budgets are exact 64-bit integers"),
    },
  },
  listRoutes: entities("routes"),
  listServices: entities("services"),
  listConsumers: entities("consumers"),
  listPolicies: entities("policies"),
  getQuotaUsage: {
    method: "GET",
    path: "/quotas/usage",
    summary: "Quota usage of consumers",
    access: "quotas:read",
    query: strictObject({ consumer: Type.Optional(Type.String()) }),
    responses: { 200: media("application/json", "The usage record; numbers are exact 64-bit integers") },
  },
  adjustQuota: {
    method: "POST",
    path: "/quotas/adjust",
    summary: "Correct a consumer's usage of a budget in its current window",
    description:
      "A negative delta returns requests, a positive one consumes them. Usage is clamped to 0 to 2^64 - 1; the response contains the new, durable value.",
    access: "quotas:write",
    body: strictObject({
      consumer: Name,
      budget: oneOf(["daily", "monthly"]),
      delta: Type.Integer({ minimum: -MAX_DELTA, maximum: MAX_DELTA, description: "Requests to add to the count" }),
      reason: Type.String({ minLength: 1, maxLength: 500, description: "Recorded in the audit log" }),
    }),
    responses: {
      200: media("application/json", "The usage record of this consumer; numbers are exact 64-bit integers"),
    },
  },
  ...credentialOperations,
  getHealth: {
    method: "GET",
    path: "/health",
    summary: "Readiness, generation and the health of every endpoint",
    access: "runtime:read",
    responses: { 200: Anything },
  },
  getStats: {
    method: "GET",
    path: "/stats",
    summary: "Breakers, requests in progress and counters",
    access: "runtime:read",
    responses: { 200: Anything },
  },
  listUpstreams: {
    method: "GET",
    path: "/upstreams",
    summary: "Current state of upstreams, breakers and endpoints",
    access: "runtime:read",
    responses: { 200: Anything },
  },
  getUpstream: {
    method: "GET",
    path: "/upstreams/{upstream}",
    summary: "Current state of an upstream",
    access: "runtime:read",
    params: strictObject({ upstream: Name }),
    responses: { 200: Anything },
  },
  forceBreaker: {
    method: "POST",
    path: "/upstreams/{upstream}/breaker",
    summary: "Open or close the breaker manually",
    access: "runtime:execute",
    params: strictObject({ upstream: Name }),
    body: strictObject({ state: oneOf(["open", "closed"]) }),
    responses: { 200: Anything },
  },
  forceEndpoint: {
    method: "POST",
    path: "/upstreams/{upstream}/endpoints/{endpoint}",
    summary: "Eject, recover or drain an endpoint",
    access: "runtime:execute",
    params: strictObject({ upstream: Name, endpoint: Type.String({ minLength: 3 }) }),
    body: strictObject({ action: oneOf(["eject", "recover", "drain"]) }),
    responses: { 200: Anything },
  },
  purgeCache: {
    method: "POST",
    path: "/cache/purge",
    summary: "Purge the cache of a route, or of all routes",
    description: "Responses in flight are not stored either.",
    access: "runtime:execute",
    body: strictObject({ route: Type.Optional(Name) }),
    bodyOptional: true,
    responses: { 200: strictObject({ routes: Type.Integer({ description: "Number of purged routes" }) }) },
  },
  listWebhooks: {
    method: "GET",
    path: "/webhooks",
    summary: "Webhook targets and their last deliveries",
    access: "events:read",
    responses: { 200: Anything },
  },
  testWebhook: {
    method: "POST",
    path: "/webhooks/test",
    summary: "Send an example event to one target now",
    description: "Responds when the delivery has completed, retries included.",
    access: "events:execute",
    body: strictObject({
      url: Type.String({ minLength: 1, description: "As in the document, or origin and path" }),
      kind: Type.Optional(oneOf([...EVENT_KINDS])),
    }),
    responses: { 200: Delivery },
  },
  streamEvents: {
    method: "GET",
    path: "/events/stream",
    summary: "Events as they happen, as server-sent events",
    description:
      "Starts after `since` or the Last-Event-ID header with missed events that are still retained; sends a comment every 15 seconds. Clients that read too slowly are disconnected; at most 32 streams are open at a time.",
    access: "events:read",
    query: strictObject({ since: Type.Optional(Type.String({ description: "Id of the last known event" })) }),
    responses: { 200: media("text/event-stream", "Server-sent events: id, event (the kind), data (the envelope)") },
  },
  replayEvents: {
    method: "POST",
    path: "/events/replay",
    summary: "Resend retained events of this process to one target",
    description: "Sequentially, oldest first, at most 100; stops at the first that is not delivered.",
    access: "events:execute",
    body: strictObject({
      from: Type.String({ minLength: 1, description: "Id of the first event" }),
      to: Type.Optional(Type.String({ minLength: 1, description: "Id of the last event. Default: the latest" })),
      target: Type.String({ minLength: 1, description: "URL of the target, or its origin and path" }),
    }),
    responses: { 200: strictObject({ deliveries: Type.Array(Delivery), complete: Type.Boolean() }) },
  },
  listAudit: {
    method: "GET",
    path: "/audit",
    summary: "Audit log of changes and refusals, newest first",
    access: "audit:read",
    query: strictObject({ limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })) }),
    responses: {
      200: strictObject({
        entries: Type.Array(
          strictObject({
            timestamp: Type.String({ format: "date-time" }),
            actor: Type.String(),
            operation: Type.String(),
            outcome: Type.String({ description: "ok, or the code of the refusal" }),
            request_id: Type.String(),
            detail: Type.Optional(Type.String()),
          }),
        ),
      }),
    },
  },
  listEvents: {
    method: "GET",
    path: "/events",
    summary: "The latest events of this process, newest first",
    access: "events:read",
    query: strictObject({
      since: Type.Optional(Type.String({ description: "Id of the last known event" })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    }),
    responses: { 200: strictObject({ events: Type.Array(Anything), complete: Type.Boolean() }) },
  },
  listExports: {
    method: "GET",
    path: "/analytics/exports",
    summary: "Runs of usage exports, newest first",
    access: "analytics:read",
    query: strictObject({
      limit: Type.Optional(Type.Integer({ description: "Clamped to 1 to 100. Default: 25." })),
    }),
    responses: { 200: Anything },
  },
  runExport: {
    method: "POST",
    path: "/analytics/exports/run",
    summary: "Write a usage statement now",
    access: "analytics:execute",
    body: strictObject({
      window: Type.Optional(oneOf(["hourly", "daily", "monthly"])),
      window_start_ms: Type.Optional(Type.Integer({ minimum: 0 })),
    }),
    bodyOptional: true,
    responses: { 200: Anything },
  },
  getTraffic: {
    method: "GET",
    path: "/traffic",
    summary: "Requests of each route in the last hour, busiest first",
    access: "runtime:read",
    responses: { 200: Traffic },
  },
  getVersion: {
    method: "GET",
    path: "/version",
    summary: "Version and uptime",
    access: "runtime:read",
    responses: { 200: Anything },
  },
  getMetrics: {
    method: "GET",
    path: "/metrics",
    summary: "Metrics in Prometheus text",
    access: "runtime:read",
    responses: { 200: media("text/plain; version=0.0.4", "Prometheus text") },
  },
  getOpenapi: {
    method: "GET",
    path: "/openapi.json",
    summary: "This API as OpenAPI 3.1",
    access: "public",
    responses: { 200: Anything },
  },
});
