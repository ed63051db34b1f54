import { oneOf, Type } from "@headworks/contract-kit";

/**
 * Private keywords: `x-expects` completes "must be …" where a pattern is unclear, `x-file` marks file paths, `x-secret`
 * text that may be a secret reference and is never echoed, `x-uint64` unsigned 64-bit numbers, `x-header-map` header
 * names to values, `x-header-renames` header names to header names, `x-cidr` IP networks, `x-choices` the allowed
 * values of a text whose slice reports violations.
 */

export const Name = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: "^\\S(.*\\S)?$",
  "x-expects": "a name without space at its ends",
});
export const Port = Type.Integer({ minimum: 1, maximum: 65_535 });
/** 0 selects a free port. */
export const ListenPort = Type.Integer({ minimum: 0, maximum: 65_535 });
/** A method, header name or cookie name (RFC 9110 section 5.6.2). */
export const Token = Type.String({
  pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
  "x-expects": "one or more letters, digits and characters of !#$%&'*+-.^_`|~",
});
/** A time with UTC offset (RFC 3339). */
export const Moment = Type.String({
  pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$",
  "x-expects": "a date and time such as 2027-01-31T12:00:00Z",
});
/** A file path; relative ones are resolved against the configuration file's directory. */
export const FilePath = Type.String({ minLength: 1, "x-file": true });

/** About 23 days: timers fire immediately beyond 2^31 - 1 ms, and some add to the configured value. */
export const MAX_MS = 2_000_000_000;
export const PositiveMs = Type.Integer({ minimum: 1, maximum: MAX_MS });
export const Ms = Type.Integer({ minimum: 0, maximum: MAX_MS });
const MAX_U32 = 4_294_967_295;
export const PositiveCount = Type.Integer({ minimum: 1, maximum: MAX_U32 });

/** Priority under load, 0 to 10; 8 and above may use the reserve. */
export const Priority = Type.Integer({ minimum: 0, maximum: 10 });

/** An unsigned 64-bit number, read as a bigint to stay exact; validators must support the keyword `x-uint64`. */
export const Uint64 = Type.Unsafe<bigint>({ "x-uint64": true, type: "integer", minimum: 0 });

/** Text that may be a secret reference, `${NAME}` or `${file:/path}`; never echoed. */
export const SecretText = Type.String({ minLength: 1, "x-secret": true });

/** Header names to values, which may be empty, and secret references where `x-secret` is set. */
export const HeaderMap = Type.Record(Type.String(), Type.String(), { "x-header-map": true });
export const SecretHeaderMap = Type.Record(Type.String(), Type.String({ "x-secret": true }), { "x-header-map": true });
export const HeaderRenames = Type.Record(Type.String(), Type.String(), { "x-header-renames": true });
/** SHA-256 of a certificate. */
export const Fingerprint = Type.String({
  pattern: "^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$",
  "x-expects": "the SHA-256 of a certificate: 64 hexadecimal digits, with or without colons",
});
export const HttpUrl = Type.String({
  pattern: "^[Hh][Tt][Tt][Pp][Ss]?://",
  "x-expects": "an absolute http or https URL",
});

/** `address/length`, or a single address. */
export const Cidr = Type.String({ minLength: 1, maxLength: 64, "x-cidr": true });
export const NameList = Type.Array(Name);
export const DryRun = Type.Boolean({ default: false, description: "Evaluate and report, never refuse" });

export const EVENT_KINDS = [
  "breaker_opened",
  "breaker_half_open",
  "breaker_closed",
  "endpoint_ejected",
  "endpoint_recovered",
  "config_published",
  "config_rejected",
] as const;
export const EventKind = oneOf([...EVENT_KINDS]);
export type EventKind = (typeof EVENT_KINDS)[number];
