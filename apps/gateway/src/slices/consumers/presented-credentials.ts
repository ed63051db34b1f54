// Tested by ../../../test/consumers.test.ts
import type { RawFields } from "@headworks/http1";

/** The field that carries an API key. */
export const API_KEY_FIELD = "x-api-key";
/** The fields of a signed request, in the order of the canonical string where they are in it. */
export const SIGNING_FIELDS = [
  "x-gateway-key-id",
  "x-gateway-timestamp",
  "x-gateway-nonce",
  "x-gateway-body-sha256",
  "x-gateway-signature",
] as const;
export type SigningField = (typeof SIGNING_FIELDS)[number];

/** What a request says about who sends it. */
export interface PresentedCredentials {
  /** Undefined: there is none. */
  apiKey: string | undefined;
  authorization: string | undefined;
  /** Signing fields that are there, once each. */
  readonly signing: Map<SigningField, string>;
  /** A field of one line came in several; what it says is nobody's guess. */
  readonly repeated: Set<string>;
}

const SIGNING_NAMES: ReadonlySet<string> = new Set(SIGNING_FIELDS);
const PREFIX = "x-gateway-";

/**
 * Finds what a client presents, in one pass; undefined for the anonymous, who are most. Names are told by their length
 * and first letter before anything is lower-cased.
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
      if (found.apiKey !== undefined) found.repeated.add(lowerName);
      found.apiKey = value;
    } else if (lowerName === "authorization") {
      found ??= nothing();
      if (found.authorization !== undefined) found.repeated.add(lowerName);
      found.authorization = value;
    } else if (isSigningField(lowerName)) {
      found ??= nothing();
      if (found.signing.has(lowerName)) found.repeated.add(lowerName);
      found.signing.set(lowerName, value);
    }
  }
  return found;
}

function mayMatter(name: string): boolean {
  // Lower-cases a letter, and nothing that matters becomes an x or an a by it.
  const first = name.charCodeAt(0) | 0x20;
  if (first === 0x61) return name.length === "authorization".length;
  return first === 0x78 && (name.length === API_KEY_FIELD.length || name.length > PREFIX.length);
}

function isSigningField(lowerName: string): lowerName is SigningField {
  return SIGNING_NAMES.has(lowerName);
}

function nothing(): PresentedCredentials {
  return { apiKey: undefined, authorization: undefined, signing: new Map(), repeated: new Set() };
}
