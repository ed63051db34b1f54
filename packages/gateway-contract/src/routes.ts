import { oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Authorization } from "./policies.ts";
import {
  DryRun,
  HeaderMap,
  HeaderRenames,
  Name,
  NameList,
  PositiveCount,
  Priority,
  SecretHeaderMap,
  Token,
} from "./primitives.ts";

/** Without a value, presence is sufficient. */
const Criterion = strictObject({ name: Type.String({ minLength: 1 }), value: Type.Optional(Type.String()) });

export const Match = strictObject({
  path: strictObject({ type: oneOf(["exact", "prefix", "regex"]), value: Type.String({ minLength: 1 }) }),
  host: Type.Optional(Type.String({ minLength: 1 })),
  listener: Type.Optional(Name),
  scheme: Type.Optional(oneOf(["http", "https"])),
  methods: Type.Optional(Type.Array(Token)),
  headers: Type.Optional(HeaderMap),
  query: Type.Optional(Type.Array(Criterion)),
  cookies: Type.Optional(Type.Array(Criterion)),
  accept: Type.Optional(Type.String({ minLength: 1 })),
});
export type Match = Static<typeof Match>;

export const Rewrite = Type.Union([
  strictObject({ type: Type.Literal("strip_prefix") }),
  strictObject({
    type: Type.Literal("replace_prefix"),
    prefix: Type.String({ minLength: 1 }),
    replacement: Type.String(),
  }),
  strictObject({ type: Type.Literal("regex"), pattern: Type.String({ minLength: 1 }), substitution: Type.String() }),
]);
export type Rewrite = Static<typeof Rewrite>;

const ProxyAction = strictObject({ type: Type.Literal("proxy"), rewrite: Type.Optional(Rewrite) });
const RedirectAction = strictObject({
  type: Type.Literal("redirect"),
  status: Type.Unsafe<301 | 302 | 303 | 307 | 308>({ type: "integer", enum: [301, 302, 303, 307, 308] }),
  scheme: Type.Optional(oneOf(["http", "https"])),
  host: Type.Optional(Type.String({ minLength: 1 })),
  port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })),
  path: Type.Optional(Type.String({ pattern: "^/", "x-expects": "a path that begins with /" })),
});
const RespondAction = strictObject({
  type: Type.Literal("respond"),
  status: Type.Integer({ minimum: 200, maximum: 599 }),
  headers: Type.Optional(HeaderMap),
  body: Type.Optional(Type.String()),
});
export const Action = Type.Union([ProxyAction, RedirectAction, RespondAction]);
export type Action = Static<typeof Action>;

/** Standard deprecation headers (RFC 9745, RFC 8594). */
export const Deprecation = strictObject({
  since: Type.Optional(Type.String()),
  sunset: Type.Optional(Type.String()),
  uri: Type.Optional(Type.String()),
});
export type Deprecation = Static<typeof Deprecation>;

export const Cors = strictObject({
  allowed_origins: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }),
  allowed_methods: Type.Optional(Type.Array(Token)),
  allowed_headers: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
  expose_headers: Type.Optional(Type.Array(Token)),
  allow_credentials: Type.Optional(Type.Boolean()),
  max_age_secs: Type.Optional(Type.Integer({ minimum: 0, maximum: 4_294_967_295 })),
});
export type Cors = Static<typeof Cors>;

export const Limits = strictObject(
  {
    max_body_bytes: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
    max_header_bytes: Type.Optional(PositiveCount),
    max_header_count: Type.Optional(PositiveCount),
    dry_run: Type.Optional(DryRun),
  },
  { minProperties: 1 },
);
export type Limits = Static<typeof Limits>;

export const Compression = strictObject({
  algorithms: Type.Array(oneOf(["gzip", "brotli", "zstd"]), { minItems: 1, uniqueItems: true }),
  level: Type.Optional(Type.Integer({ minimum: 0, maximum: 22 })),
  min_size: Type.Optional(Type.Integer({ minimum: 0 })),
  content_types: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
  excluded_content_types: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
});
export type Compression = Static<typeof Compression>;

export const Cache = strictObject({
  ttl_secs: Type.Integer({ minimum: 1, maximum: 86_400 }),
  override: Type.Optional(Type.Boolean()),
  stale_while_revalidate_secs: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400 })),
  max_body_bytes: Type.Optional(Type.Integer({ minimum: 1, maximum: 16_777_216 })),
  vary: Type.Optional(Type.Array(Token)),
  coalescing: Type.Optional(strictObject({ wait_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 60_000 })) })),
});
export type Cache = Static<typeof Cache>;

/** Applied in the order set, add, rename, remove. */
const FieldChanges = strictObject({
  set: Type.Optional(SecretHeaderMap),
  add: Type.Optional(SecretHeaderMap),
  rename: Type.Optional(HeaderRenames),
  remove: Type.Optional(Type.Array(Token)),
});
export type FieldChanges = Static<typeof FieldChanges>;

/** Query parameters may have any name. */
const ParameterMap = Type.Record(Type.String(), Type.String());
const QueryChanges = strictObject({
  set: Type.Optional(ParameterMap),
  add: Type.Optional(ParameterMap),
  rename: Type.Optional(ParameterMap),
  remove: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
});

export const Transforms = strictObject({
  request: Type.Optional(strictObject({ headers: Type.Optional(FieldChanges), query: Type.Optional(QueryChanges) })),
  response: Type.Optional(strictObject({ headers: Type.Optional(FieldChanges) })),
});
export type Transforms = Static<typeof Transforms>;

export const SecurityHeaders = strictObject(
  {
    hsts_max_age_secs: Type.Optional(PositiveCount),
    hsts_include_subdomains: Type.Optional(Type.Boolean()),
    hsts_preload: Type.Optional(Type.Boolean()),
    nosniff: Type.Optional(Type.Boolean()),
    content_security_policy: Type.Optional(Type.String({ minLength: 1 })),
    frame_options: Type.Optional(oneOf(["deny", "sameorigin"])),
  },
  { minProperties: 1 },
);
export type SecurityHeaders = Static<typeof SecurityHeaders>;

export const Maintenance = strictObject({
  retry_after_secs: Type.Optional(PositiveCount),
  message: Type.Optional(Type.String({ pattern: "\\S", "x-expects": "more than white space" })),
});
export type Maintenance = Static<typeof Maintenance>;

/** A list of methods in upper case; undefined for all methods (no list, or `*`). */
export function namedMethods(list: readonly string[] | undefined): readonly string[] | undefined {
  if (list === undefined || list.length === 0 || list.includes("*")) return undefined;
  return [...new Set(list.map((method) => method.toUpperCase()))];
}

export const Route = strictObject({
  name: Name,
  /** Required by the action proxy. */
  service: Type.Optional(Name),
  match: Match,
  action: Action,
  deprecation: Type.Optional(Deprecation),
  cors: Type.Optional(Cors),
  /** Others get 405 with Allow. */
  methods: Type.Optional(Type.Array(Token, { minItems: 1 })),
  auth_required: Type.Optional(Type.Boolean({ default: false })),
  authorization: Type.Optional(Authorization),
  policies: Type.Optional(NameList),
  priority: Type.Optional(Priority),
  limits: Type.Optional(Limits),
  compression: Type.Optional(Compression),
  cache: Type.Optional(Cache),
  transforms: Type.Optional(Transforms),
  security_headers: Type.Optional(SecurityHeaders),
  maintenance: Type.Optional(Maintenance),
});
export type Route = Static<typeof Route>;
