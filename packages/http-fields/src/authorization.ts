import { isNumeric, readJson } from "@headworks/json";
import { parseParameter, splitOutsideQuotes, type Parameter } from "./parameters.ts";

/** An Authorization or Proxy-Authorization value, decoded for display. Nothing is verified. */
export type Authorization =
  | { kind: "basic"; scheme: string; username: string; password: string }
  | { kind: "bearer"; scheme: string; token: string; jwt: Jwt | undefined }
  /** Any other scheme; `parameters` as in Digest, `rest` is everything after the scheme. */
  | { kind: "other"; scheme: string; rest: string; parameters: readonly Parameter[] };

/** A JSON Web Token in compact form (RFC 7519), decoded but not verified. Times are Unix milliseconds. */
export interface Jwt {
  header: Readonly<Record<string, unknown>>;
  payload: Readonly<Record<string, unknown>>;
  /** As written; empty for unsecured tokens. */
  signature: string;
  issuedAtMs: number | undefined;
  notBeforeMs: number | undefined;
  expiresAtMs: number | undefined;
}

/** Parses a credentials value (RFC 9110 section 11.4). Malformed Basic credentials are of kind `other`. */
export function parseAuthorization(text: string): Authorization {
  const trimmed = text.trim();
  const space = trimmed.search(/[ \t]/);
  const scheme = space === -1 ? trimmed : trimmed.slice(0, space);
  const rest = space === -1 ? "" : trimmed.slice(space).trim();
  if (scheme.toLowerCase() === "basic") {
    const decoded = base64Text(rest);
    const colon = decoded?.indexOf(":") ?? -1;
    if (decoded !== undefined && colon !== -1) {
      return { kind: "basic", scheme, username: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
    }
  }
  if (scheme.toLowerCase() === "bearer") return { kind: "bearer", scheme, token: rest, jwt: decodeJwt(rest) };
  const parameters = splitOutsideQuotes(rest, ",")
    .map(parseParameter)
    .filter((each) => each !== undefined);
  return { kind: "other", scheme, rest, parameters };
}

/** Decodes a signed or unsecured token; undefined unless it has three parts with two JSON objects. */
export function decodeJwt(token: string): Jwt | undefined {
  const parts = token.split(".");
  const [first, second, signature] = parts;
  if (parts.length !== 3 || first === undefined || second === undefined || signature === undefined) return undefined;
  const header = jsonObject(first);
  const payload = jsonObject(second);
  if (header === undefined || payload === undefined) return undefined;
  return {
    header,
    payload,
    signature,
    issuedAtMs: claimMs(payload["iat"]),
    notBeforeMs: claimMs(payload["nbf"]),
    expiresAtMs: claimMs(payload["exp"]),
  };
}

const claimMs = (value: unknown): number | undefined =>
  isNumeric(value) && Number.isFinite(Number(value)) ? Number(value) * 1000 : undefined;

function jsonObject(base64: string): Readonly<Record<string, unknown>> | undefined {
  const text = base64Text(base64);
  if (text === undefined) return undefined;
  try {
    const value: unknown = readJson(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isNumeric(value);

/** Decodes base64 or base64url: UTF-8, otherwise Latin-1. Undefined for invalid base64. */
function base64Text(base64: string): string | undefined {
  const standard = base64.replaceAll("-", "+").replaceAll("_", "/");
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(standard)) return undefined;
  let binary: string;
  try {
    binary = atob(standard);
  } catch {
    return undefined;
  }
  try {
    const octets = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(octets);
  } catch {
    return binary;
  }
}
