import { createHmac } from "node:crypto";
import { SIGNING_FIELDS, type PresentedCredentials } from "./presented-credentials.ts";

/** The signing fields of one request, of the right shape. */
export interface SigningParts {
  readonly keyId: string;
  readonly timestamp: string;
  readonly nonce: string;
  /** SHA-256 of the body, lower-case hexadecimal. */
  readonly bodySha256: string;
  /** HMAC-SHA256 of the canonical string, lower-case hexadecimal. */
  readonly signature: string;
}

const VERSION_TAG = "gateway-hmac-v1";
const SHAPES: Readonly<Record<keyof SigningParts, RegExp>> = {
  keyId: /^[!-~]{1,128}$/,
  timestamp: /^[0-9]{1,12}$/,
  nonce: /^[!-~]{16,256}$/,
  bodySha256: /^[0-9a-f]{64}$/,
  signature: /^[0-9a-f]{64}$/,
};

/** The signing fields, if all are there, each once and of its shape. */
export function signingPartsOf({ signing, repeated }: PresentedCredentials): SigningParts | undefined {
  const partOf = (part: keyof SigningParts): string | undefined => {
    const name = SIGNING_FIELDS[part];
    const value = signing?.get(name);
    if (value === undefined || repeated?.has(name) === true) return undefined;
    return SHAPES[part].test(value) ? value : undefined;
  };
  const keyId = partOf("keyId");
  const timestamp = partOf("timestamp");
  const nonce = partOf("nonce");
  const bodySha256 = partOf("bodySha256");
  const signature = partOf("signature");
  if (keyId === undefined || timestamp === undefined || nonce === undefined) return undefined;
  if (bodySha256 === undefined || signature === undefined) return undefined;
  return { keyId, timestamp, nonce, bodySha256, signature };
}

/** What of a request is signed besides the signing fields; path and query as they are on the wire. */
export interface SignedTarget {
  readonly method: string;
  readonly sentTarget: string;
}

/** The text that is signed, version 1: eight lines, a line feed between them and none at the end. */
export function canonicalString({ method, sentTarget }: SignedTarget, parts: Omit<SigningParts, "signature">): string {
  const mark = sentTarget.indexOf("?");
  return [
    VERSION_TAG,
    parts.keyId,
    method.toUpperCase(),
    mark === -1 ? sentTarget : sentTarget.slice(0, mark),
    mark === -1 ? "" : sentTarget.slice(mark + 1),
    parts.timestamp,
    parts.nonce,
    parts.bodySha256,
  ].join("\n");
}

/** HMAC-SHA256 of a canonical string; its characters are bytes of the wire. */
export function macOf(secret: Buffer, canonical: string): Buffer {
  return createHmac("sha256", secret).update(canonical, "latin1").digest();
}
