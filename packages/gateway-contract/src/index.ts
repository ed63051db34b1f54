/** The contract of Sluice; safe for browsers. */
export { adminApiInfo, adminOperations } from "./admin.ts";
export type { AffectedByPlan, PublishedConfig, RouteTraffic } from "./admin.ts";
export { dayOf, monthOf, secondsUntil, type CalendarWindow } from "./calendar-window.ts";
export { ADMIN_ERRORS, type AdminErrorCode } from "./errors.ts";
export { Authorization } from "./policies.ts";
export { Consumer, Credential, IntrospectionProvider, JwtProvider, Quotas } from "./consumers.ts";
export { configText, defineConfig, type WrittenConfig } from "./define-config.ts";
export { DocumentSchema, type ConfigDocument, type DocumentInput } from "./document.ts";
export { ERRORS, type ErrorCode } from "./errors.ts";
export type { EventEnvelope, EventPayloads } from "./events.ts";
export { FIELD_NOTES } from "./field-notes.ts";
export {
  Admin,
  ADMIN_ROLES,
  Analytics,
  DEFAULT_ADMIN_BIND,
  DEFAULT_BUFFERED_BYTES,
  GatewaySettings,
  SsrfFilter,
  type AdminRole,
} from "./gateway.ts";
export { ISSUE_CODES, type Issue, type IssueCode } from "./issues.ts";
export { Listener, ListenerTls } from "./listeners.ts";
export { Callout, Policy, RateLimit } from "./policies.ts";
export { EVENT_KINDS, MAX_MS, type EventKind } from "./primitives.ts";
export {
  Action,
  Cache,
  Compression,
  Cors,
  Deprecation,
  Limits,
  Maintenance,
  Match,
  namedMethods,
  Rewrite,
  Route,
  SecurityHeaders,
  Transforms,
  type FieldChanges,
} from "./routes.ts";
export {
  ActiveHealth,
  Breaker,
  DEFAULT_CONNECTION_CAP,
  DEFAULT_MAX_CONNECTION_AGE_MS,
  DEFAULT_MAX_PENDING,
  DEFAULT_PENDING_MS,
  DEFAULT_REQUEST_BUFFER_BYTES,
  DEFAULT_RESPONSE_BUFFER_BYTES,
  Endpoint,
  LOAD_BALANCERS,
  PassiveHealth,
  Retries,
  Service,
  STALLED_FOR_EACH,
  Upstream,
  UpstreamTimeouts,
  UpstreamTls,
} from "./upstreams.ts";
export { WebhookTarget } from "./gateway.ts";
