import { parseCookieDate } from "./http-date.ts";

/** One pair of a Cookie field, as sent. A pair without `=` has an empty name, as user agents treat it. */
export interface Cookie {
  name: string;
  value: string;
}

/** The pairs of one or more Cookie values, in order with duplicates; empty pieces are skipped. */
export function parseCookies(values: string | readonly string[]): Cookie[] {
  const cookies: Cookie[] = [];
  for (const value of typeof values === "string" ? [values] : values) {
    for (const piece of value.split(";")) {
      if (piece.trim() !== "") cookies.push(pair(piece));
    }
  }
  return cookies;
}

export const formatCookies = (cookies: readonly Cookie[]): string =>
  cookies.map(({ name, value }) => (name === "" ? value : `${name}=${value}`)).join("; ");

/** A Set-Cookie field; attributes that user agents would ignore are only in `attributes`. */
export interface SetCookie extends Cookie {
  /** All attributes in order as written; the value is undefined without `=`. */
  attributes: readonly { name: string; value: string | undefined }[];
  /** Unix time in milliseconds. */
  expiresMs?: number;
  maxAgeSeconds?: number;
  /** Lower case, without a leading dot. */
  domain?: string;
  path?: string;
  sameSite?: "Strict" | "Lax" | "None";
  priority?: string;
  secure: boolean;
  httpOnly: boolean;
  partitioned: boolean;
}

/** Parses a Set-Cookie value as in RFC 6265bis section 5.6: never fails, the last of equal attributes counts. */
export function parseSetCookie(text: string): SetCookie {
  const [first = "", ...rest] = text.split(";");
  const attributes = rest
    .filter((piece) => piece.trim() !== "")
    .map((piece) => {
      const equals = piece.indexOf("=");
      return equals === -1
        ? { name: piece.trim(), value: undefined }
        : { name: piece.slice(0, equals).trim(), value: piece.slice(equals + 1).trim() };
    });
  const cookie: SetCookie = { ...pair(first), attributes, secure: false, httpOnly: false, partitioned: false };
  for (const { name, value } of attributes) applyAttribute(cookie, name.toLowerCase(), value ?? "");
  return cookie;
}

function applyAttribute(cookie: SetCookie, name: string, value: string): void {
  if (name === "secure") cookie.secure = true;
  else if (name === "httponly") cookie.httpOnly = true;
  else if (name === "partitioned") cookie.partitioned = true;
  else if (name === "expires") {
    const expiresMs = parseCookieDate(value);
    if (expiresMs !== undefined) cookie.expiresMs = expiresMs;
  } else if (name === "max-age") {
    if (/^-?[0-9]+$/.test(value)) cookie.maxAgeSeconds = Number(value);
  } else if (name === "domain") {
    if (value !== "") cookie.domain = value.replace(/^\./, "").toLowerCase();
  } else if (name === "path") {
    if (value.startsWith("/")) cookie.path = value;
    else delete cookie.path;
  } else if (name === "samesite") {
    const sameSite = (["Strict", "Lax", "None"] as const).find((each) => each.toLowerCase() === value.toLowerCase());
    if (sameSite === undefined) delete cookie.sameSite;
    else cookie.sameSite = sameSite;
  } else if (name === "priority") cookie.priority = value;
}

function pair(text: string): Cookie {
  const equals = text.indexOf("=");
  return equals === -1
    ? { name: "", value: text.trim() }
    : { name: text.slice(0, equals).trim(), value: text.slice(equals + 1).trim() };
}
