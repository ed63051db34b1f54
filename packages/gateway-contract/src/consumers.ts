import { oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Authorization } from "./policies.ts";
import {
  DryRun,
  FilePath,
  Fingerprint,
  HttpUrl,
  Moment,
  Name,
  NameList,
  Priority,
  SecretText,
  Uint64,
} from "./primitives.ts";

/** Validity period, so that old and new secrets can overlap. */
const validity = { not_before: Type.Optional(Moment), not_after: Type.Optional(Moment) };
const ApiKeyCredential = strictObject({ type: Type.Literal("api_key"), key: SecretText, ...validity });
const BasicCredential = strictObject({
  type: Type.Literal("basic"),
  username: Type.String({
    minLength: 1,
    maxLength: 255,
    pattern: "^[^:]+$",
    "x-expects": "a user name without a colon",
  }),
  password: SecretText,
  ...validity,
});
const JwtCredential = strictObject({
  type: Type.Literal("jwt"),
  issuer: Type.String({ minLength: 1 }),
  audiences: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
});
/** Exactly one of `subject` (common name) and `fingerprint` (SHA-256 of the certificate, hexadecimal). */
const MtlsCredential = strictObject({
  type: Type.Literal("mtls"),
  subject: Type.Optional(Type.String({ minLength: 1 })),
  fingerprint: Type.Optional(Fingerprint),
});
const HmacCredential = strictObject({
  type: Type.Literal("hmac"),
  key_id: Type.String({ minLength: 1, maxLength: 128, pattern: "^[!-~]+$", "x-expects": "visible ASCII" }),
  secret: SecretText,
  ...validity,
});

export const Credential = Type.Union([
  ApiKeyCredential,
  BasicCredential,
  JwtCredential,
  MtlsCredential,
  HmacCredential,
]);
export type Credential = Static<typeof Credential>;

/** 0 gets an error message of its own: omit a budget for no limit. */
const Budget = Type.Unsafe<bigint>({ ...Uint64, minimum: 1 });

/** Budgets over UTC calendar windows (specification, consumer quotas). */
export const Quotas = strictObject({
  daily_requests: Type.Optional(Budget),
  monthly_requests: Type.Optional(Budget),
  dry_run: Type.Optional(DryRun),
});
export type Quotas = Static<typeof Quotas>;

export const Consumer = strictObject({
  name: Name,
  groups: Type.Optional(NameList),
  credentials: Type.Optional(Type.Array(Credential)),
  quotas: Type.Optional(Quotas),
  policies: Type.Optional(NameList),
  authorization: Type.Optional(Authorization),
  priority: Type.Optional(Priority),
  type: Type.Optional(oneOf(["user", "agent"])),
});
export type Consumer = Static<typeof Consumer>;

/** The key set of an issuer of JSON Web Tokens. */
export const JwtProvider = strictObject({
  name: Name,
  jwks_url: HttpUrl,
  issuer: Type.Optional(Type.String({ minLength: 1 })),
  audience: Type.Optional(Type.String({ minLength: 1 })),
  /** The consumer of all valid tokens of this provider. */
  consumer: Type.Optional(Name),
  algorithms: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
  refresh_secs: Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400 })),
  leeway_secs: Type.Optional(Type.Integer({ minimum: 0, maximum: 3600 })),
  /** How long a removed key still verifies tokens; 0 ends it at once. */
  retired_key_grace_secs: Type.Optional(Type.Integer({ minimum: 0, maximum: 604_800 })),
  trusted_ca_file: Type.Optional(FilePath),
});
export type JwtProvider = Static<typeof JwtProvider>;

/** A token introspection endpoint (RFC 7662). */
export const IntrospectionProvider = strictObject({
  name: Name,
  /** Default: discovered from the issuer's metadata. */
  introspection_endpoint: Type.Optional(HttpUrl),
  client_id: Type.String({ minLength: 1, maxLength: 255 }),
  client_secret: SecretText,
  issuer: Type.Optional(Type.String({ minLength: 1 })),
  audience: Type.Optional(Type.String({ minLength: 1 })),
  /** The consumer of all valid tokens of this provider. */
  consumer: Type.Optional(Name),
  /** Scopes that a valid token must have. */
  scopes: Type.Optional(NameList),
  /** Treats clients as anonymous while the endpoint is unavailable. */
  fail_open: Type.Optional(Type.Boolean()),
  introspection_cache_ttl_s: Type.Optional(Type.Integer({ minimum: 1, maximum: 3600 })),
  trusted_ca_file: Type.Optional(FilePath),
});
export type IntrospectionProvider = Static<typeof IntrospectionProvider>;
