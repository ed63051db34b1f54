import type { Static } from "typebox";
import { oneOf, strictObject, Type } from "@headworks/contract-kit";
import { IntrospectionProvider, JwtProvider } from "./consumers.ts";
import { CipherSuites } from "./listeners.ts";
import { Authorization } from "./policies.ts";
import {
  Cidr,
  EVENT_KINDS,
  FilePath,
  Fingerprint,
  MAX_MS,
  Ms,
  NameList,
  PositiveCount,
  PositiveMs,
  SecretHeaderMap,
  SecretText,
  Token,
} from "./primitives.ts";

/** Blocks ranges of addresses for outbound connections of webhooks and callouts. Enabled if present. */
export const SsrfFilter = strictObject({
  enabled: Type.Optional(Type.Boolean()),
  deny: Type.Optional(Type.Array(Cidr)),
  allow: Type.Optional(Type.Array(Cidr)),
  /** Deprecated name of `allow`. */
  allowlist: Type.Optional(Type.Array(Cidr)),
  normalize_embedded_ipv4: Type.Optional(Type.Boolean()),
});

export type SsrfFilter = Static<typeof SsrfFilter>;

/** Default of `max_buffered_bytes`. */
export const DEFAULT_BUFFERED_BYTES = 134_217_728;

/** Gateway settings: at the root of the document or under `gateway`, each in one of both. */
export const gatewayFields = {
  name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      pattern: "^[A-Za-z0-9._-]+$",
      "x-expects": "letters, digits and the characters . _ -",
    }),
  ),
  trusted_proxies: Type.Optional(Type.Array(Cidr)),
  max_concurrent_requests: Type.Optional(PositiveCount),
  /** Total of bodies buffered for slow clients and for connections. */
  max_buffered_bytes: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  load_shed_dry_run: Type.Optional(Type.Boolean()),
  admission_queue: Type.Optional(
    strictObject({
      enabled: Type.Optional(Type.Boolean()),
      max_queue_size: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
      queue_timeout_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
      per_priority: Type.Optional(Type.Boolean()),
    }),
  ),
  allow_empty_routes: Type.Optional(Type.Boolean()),
  global_policies: Type.Optional(NameList),
  authorization: Type.Optional(Authorization),
  via: Type.Optional(
    strictObject({
      requests: Type.Optional(Type.Boolean()),
      answers: Type.Optional(Type.Boolean()),
      max_passes: Type.Optional(Type.Integer({ minimum: 1, maximum: 16 })),
    }),
  ),
  request_id_header: Type.Optional(Token),
  shutdown_delay_ms: Type.Optional(Ms),
  shutdown_timeout_ms: Type.Optional(PositiveMs),
  forward_client_headers: Type.Optional(Type.Array(Token)),
  forward_credentials: Type.Optional(Type.Boolean()),
  ssrf_filter: Type.Optional(SsrfFilter),
  egress: Type.Optional(strictObject({ dns_timeout_ms: Type.Optional(PositiveMs) })),
  jwt_providers: Type.Optional(Type.Array(JwtProvider)),
  oidc_providers: Type.Optional(Type.Array(IntrospectionProvider)),
  hmac_auth: Type.Optional(
    strictObject({ max_clock_skew_secs: Type.Optional(Type.Integer({ minimum: 1, maximum: 3600 })) }),
  ),
} as const;

export const GatewaySettings = strictObject(gatewayFields);

export type GatewaySettings = Static<typeof GatewaySettings>;

export const ADMIN_ROLES = ["viewer", "operator", "admin"] as const;

export type AdminRole = (typeof ADMIN_ROLES)[number];

/** Exactly one of the fields. */
const CertificateMatch = strictObject(
  {
    subject: Type.Optional(Type.String({ minLength: 1 })),
    san_uri: Type.Optional(Type.String({ minLength: 1 })),
    san_dns: Type.Optional(Type.String({ minLength: 1 })),
    fingerprint: Type.Optional(Fingerprint),
  },
  { minProperties: 1, maxProperties: 1 },
);

export const DEFAULT_ADMIN_BIND = "127.0.0.1:2019";

export const Admin = strictObject({
  bind: Type.Optional(Type.String({ default: DEFAULT_ADMIN_BIND })),
  tls: Type.Optional(
    strictObject({
      cert_file: FilePath,
      key_file: FilePath,
      client_ca_file: FilePath,
      ciphers: Type.Optional(CipherSuites),
    }),
  ),
  /** Absent: every valid certificate is an administrator. */
  roles: Type.Optional(Type.Array(strictObject({ match: CertificateMatch, role: oneOf([...ADMIN_ROLES]) }))),
  audit_log: Type.Optional(strictObject({ path: Type.Optional(FilePath) })),
});

export type Admin = Static<typeof Admin>;

export const Analytics = strictObject({
  exports: Type.Optional(
    strictObject({
      directory: FilePath,
      window: Type.Optional(oneOf(["hourly", "daily", "monthly"])),
      formats: Type.Optional(Type.Array(oneOf(["csv", "json"]), { minItems: 1, uniqueItems: true })),
    }),
  ),
  traces: Type.Optional(
    strictObject({
      url: Type.String({ minLength: 1 }),
      headers: Type.Optional(SecretHeaderMap),
      sample_ratio: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
      timeout_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 60_000 })),
      buffer: Type.Optional(Type.Integer({ minimum: 64, maximum: 65_536 })),
      flush_ms: Type.Optional(Type.Integer({ minimum: 100, maximum: 60_000 })),
      batch_max: Type.Optional(Type.Integer({ minimum: 1, maximum: 4096 })),
    }),
  ),
});

export type Analytics = Static<typeof Analytics>;

/** Fields are validated with the document, so that issues are specific. */
export const WebhookTarget = strictObject({
  url: Type.String(),
  events: Type.Array(Type.String({ "x-choices": EVENT_KINDS })),
  headers: Type.Optional(SecretHeaderMap),
  timeout_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 60_000, default: 2000 })),
  max_attempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 10, default: 3 })),
  backoff_base_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_MS, default: 100 })),
  backoff_cap_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_MS, default: 1000 })),
  /** Adds the three headers of Standard Webhooks. */
  signing: Type.Optional(strictObject({ secret: SecretText })),
});

export type WebhookTarget = Static<typeof WebhookTarget>;
