import type { RawFields } from "@headworks/http1";

export const API_KEY_FIELD = "x-api-key";
export const AUTHORIZATION_FIELD = "authorization";
/** The fields of a signed request. */
export const SIGNING_FIELDS = {
  keyId: "x-gateway-key-id",
  timestamp: "x-gateway-timestamp",
  nonce: "x-gateway-nonce",
  bodySha256: "x-gateway-body-sha256",
  signature: "x-gateway-signature",
} as const;

/** Credential fields of a request. */
export interface PresentedCredentials {
  apiKey: string | undefined;
  authorization: SchemeCredential | undefined;
  /** Signing fields by lower-case name. */
  signing: Map<string, string> | undefined;
  /** Lower-case names of repeated fields, which are ambiguous. */
  repeated: Set<string> | undefined;
}

const SIGNING_NAMES: ReadonlySet<string> = new Set(Object.values(SIGNING_FIELDS));
const MIN_SIGNING_NAME_LENGTH = Math.min(...Object.values(SIGNING_FIELDS).map((name) => name.length));

/**
 * Collects credentials in one pass; undefined for anonymous requests, the most common case. Names are prefiltered by
 * length and first letter before lower-casing.
 */
export function presentedCredentials(fields: Readonly<RawFields>): PresentedCredentials | undefined {
  let found: PresentedCredentials | undefined;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (!mayMatter(name)) continue;
    const lowerName = name.toLowerCase();
    const value = fields[at + 1] ?? "";
    if (lowerName === API_KEY_FIELD) {
      found ??= nothing();
      if (found.apiKey !== undefined) addRepeated(found, lowerName);
      found.apiKey = value;
    } else if (lowerName === AUTHORIZATION_FIELD) {
      found ??= nothing();
      if (found.authorization !== undefined) addRepeated(found, lowerName);
      found.authorization = schemeOf(value);
    } else if (SIGNING_NAMES.has(lowerName)) {
      found ??= nothing();
      found.signing ??= new Map();
      if (found.signing.has(lowerName)) addRepeated(found, lowerName);
      found.signing.set(lowerName, value);
    }
  }
  return found;
}

function mayMatter(name: string): boolean {
  // Lower-cases letters; false positives are excluded by the full comparison.
  const first = name.charCodeAt(0) | 0x20;
  if (first === 0x61) return name.length === AUTHORIZATION_FIELD.length;
  return first === 0x78 && (name.length === API_KEY_FIELD.length || name.length >= MIN_SIGNING_NAME_LENGTH);
}

function addRepeated(found: PresentedCredentials, lowerName: string): void {
  (found.repeated ??= new Set()).add(lowerName);
}

function nothing(): PresentedCredentials {
  return { apiKey: undefined, authorization: undefined, signing: undefined, repeated: undefined };
}

/** A parsed `Authorization` value (RFC 9110 section 11.6.2). */
interface SchemeCredential {
  /** In lower case. */
  readonly scheme: string;
  /** The rest after the scheme and spaces. */
  readonly rest: string;
}

/** Splits an `Authorization` value. Never fails; an empty value has an empty scheme. */
function schemeOf(value: string): SchemeCredential {
  const end = value.search(/[ \t]/);
  if (end === -1) return { scheme: value.toLowerCase(), rest: "" };
  return { scheme: value.slice(0, end).toLowerCase(), rest: value.slice(end).trim() };
}
