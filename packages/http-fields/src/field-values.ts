import { isNumeric, readJson } from "@headworks/json";
import { type Parameter, parseParameter, splitOutsideQuotes } from "./media-type.ts";

const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const monthNames = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const imfFixdate =
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT$/;

export type ImfFixdate =
  | { readonly kind: "date"; readonly epochS: number }
  /** No IMF-fixdate, or a day or time that does not exist. */
  | { readonly kind: "malformed" }
  /** A date with the wrong weekday; `weekday` is the right one. */
  | { readonly kind: "weekday-mismatch"; readonly epochS: number; readonly weekday: string };

/**
 * Parses an IMF-fixdate (RFC 9110 section 5.6.7) to Unix seconds, negative before 1970. Strict: letter case counts,
 * and obsolete forms and leap seconds (which Unix time cannot represent) are malformed.
 */
export function parseImfFixdate(text: string): ImfFixdate {
  const match = imfFixdate.exec(text);
  if (match === null) return { kind: "malformed" };
  const [, weekday, dayText, monthName = "", yearText, hourText, minuteText, secondText] = match;
  const month = monthNames.indexOf(monthName);
  const [day, year] = [Number(dayText), Number(yearText)];
  const [hour, minute, second] = [Number(hourText), Number(minuteText), Number(secondText)];
  if (month === -1 || day < 1 || day > daysIn(month, year)) return { kind: "malformed" };
  if (hour > 23 || minute > 59 || second > 59) return { kind: "malformed" };
  const days = daysSinceEpoch(year, month, day);
  const epochS = days * 86_400 + hour * 3600 + minute * 60 + second;
  // 1 January 1970 was a Thursday.
  const rightWeekday = weekdays[(((days + 4) % 7) + 7) % 7] ?? "";
  return rightWeekday === weekday
    ? { kind: "date", epochS }
    : { kind: "weekday-mismatch", epochS, weekday: rightWeekday };
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

function daysIn(month: number, year: number): number {
  if (month === 1) return isLeap(year) ? 29 : 28;
  return month === 3 || month === 5 || month === 8 || month === 10 ? 30 : 31;
}

/** Days of the proleptic Gregorian calendar from 1 January 1970; `month` counts from 0. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const before = year - 1;
  let days = before * 365 + Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400) - 719_162;
  for (let each = 0; each < month; each += 1) days += daysIn(each, year);
  return days + day - 1;
}

const rfc850Date =
  /^(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, ([0-9]{2})-([A-Z][a-z]{2})-([0-9]{2}) ([0-9]{2}:[0-9]{2}:[0-9]{2}) GMT$/;

const asctimeDate =
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2}) ([ 0-9][0-9]) ([0-9]{2}:[0-9]{2}:[0-9]{2}) ([0-9]{4})$/;

/**
 * Parses an HTTP date in any of its three forms (RFC 9110 section 5.6.7) to Unix milliseconds. Strict: undefined for
 * a wrong weekday, a 30 February or any other form. A two-digit year is at most 50 years after `nowMs`.
 */
export function parseHttpDate(text: string, nowMs = Date.now()): number | undefined {
  const date = parseImfFixdate(text[3] === "," ? text : asImfFixdate(text, nowMs));
  return date.kind === "date" ? date.epochS * 1000 : undefined;
}

/** Converts an obsolete form to an IMF-fixdate; returns any other text unchanged. */
function asImfFixdate(text: string, nowMs: number): string {
  const asctime = asctimeDate.exec(text);
  if (asctime !== null) {
    const [, weekday, month, day = "", time, year] = asctime;
    return `${weekday}, ${day.replace(" ", "0")} ${month} ${year} ${time} GMT`;
  }
  const rfc850 = rfc850Date.exec(text);
  if (rfc850 === null) return text;
  const [, weekday = "", day, month, twoDigits, time] = rfc850;
  const thisYear = new Date(nowMs).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(twoDigits);
  return `${weekday.slice(0, 3)}, ${day} ${month} ${year > thisYear + 50 ? year - 100 : year} ${time} GMT`;
}

/** An IMF-fixdate from Unix milliseconds; fractions of a second are cut. Throws a RangeError outside years 0 to 9999. */
export function formatHttpDate(ms: number): string {
  const date = new Date(ms);
  const year = date.getUTCFullYear();
  if (!(year >= 0 && year <= 9999)) throw new RangeError("an HTTP date lies in the years 0 to 9999");
  return date.toUTCString();
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/** Parses a cookie date to Unix milliseconds by the lenient algorithm of RFC 6265 section 5.1.1. */
export function parseCookieDate(text: string): number | undefined {
  let time: [number, number, number] | undefined;
  let day: number | undefined;
  let month: number | undefined;
  let year: number | undefined;
  for (const part of text.split(/[\t\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+/)) {
    const clock = /^([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[^0-9]|$)/.exec(part);
    const position = months.indexOf(part.slice(0, 3).toLowerCase());
    if (time === undefined && clock !== null) time = [Number(clock[1]), Number(clock[2]), Number(clock[3])];
    else if (day === undefined && /^[0-9]{1,2}(?:[^0-9]|$)/.test(part)) day = Number.parseInt(part, 10);
    else if (month === undefined && position !== -1) month = position;
    else if (year === undefined && /^[0-9]{2,4}(?:[^0-9]|$)/.test(part)) year = Number.parseInt(part, 10);
  }
  if (time === undefined || day === undefined || month === undefined || year === undefined) return undefined;
  if (year >= 70 && year <= 99) year += 1900;
  else if (year <= 69) year += 2000;
  const [hour, minute, second] = time;
  if (day < 1 || year < 1601 || hour > 23 || minute > 59 || second > 59) return undefined;
  const date = new Date(Date.UTC(year, month, day, hour, minute, second));
  return date.getUTCDate() === day ? date.getTime() : undefined;
}

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

/**
 * Adds `name` to Vary in a flat list of fields (name, value, name, value, …), in place. All Vary lines become one at
 * the position of the first; members keep their order and spelling, each once. `*` (RFC 9110 section 12.5.5) includes
 * everything and stays alone.
 */
export function foldVary(fields: string[], name: string): void {
  let position = -1;
  let kept = 0;
  const members: string[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const fieldName = fields[at] ?? "";
    const value = fields[at + 1] ?? "";
    const isVary = fieldName.length === 4 && fieldName.toLowerCase() === "vary";
    if (isVary) addMembers(members, value);
    if (isVary && position !== -1) continue;
    if (isVary) position = kept;
    fields[kept] = fieldName;
    fields[kept + 1] = value;
    kept += 2;
  }
  fields.length = kept;
  if (position === -1) {
    fields.push("Vary", name);
    return;
  }
  addMembers(members, name);
  fields[position + 1] = members.includes("*") ? "*" : members.join(", ");
}

function addMembers(members: string[], value: string): void {
  for (const piece of value.split(",")) {
    const member = piece.trim();
    const lower = member.toLowerCase();
    if (member !== "" && !members.some((each) => each.toLowerCase() === lower)) members.push(member);
  }
}

/** A Link value with one target (RFC 8288 section 3). The URI must not contain `<`, `>`, `"`, spaces and controls. */
export function formatLink(uri: string, relation: string): string {
  return `<${uri}>; rel="${relation}"`;
}

/** Fields of HTTP/1 connections, which are forbidden in HTTP/2 (RFC 9113, 8.2.2); Host becomes `:authority`. */
const FORBIDDEN = new Set([
  "connection",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

/** Appends fields for HTTP/2: lower-case names, no HTTP/1 connection fields, TE only as `trailers`. */
export function appendHttp2Fields(fields: readonly string[], into: string[]): void {
  for (let at = 0; at < fields.length; at += 2) {
    const name = (fields[at] ?? "").toLowerCase();
    const value = fields[at + 1] ?? "";
    if (FORBIDDEN.has(name) || (name === "te" && value.toLowerCase() !== "trailers")) continue;
    into.push(name, value);
  }
}

/** The fields without pseudo-fields. Cookie fields are joined (RFC 9113, 8.2.3). */
export function withoutPseudoFields(section: readonly string[]): string[] {
  const fields: string[] = [];
  let cookieAt = -1;
  for (let at = 0; at < section.length; at += 2) {
    const name = section[at] ?? "";
    const value = section[at + 1] ?? "";
    if (name.startsWith(":")) continue;
    if (name === "cookie") {
      if (cookieAt !== -1) {
        fields[cookieAt] = `${fields[cookieAt]}; ${value}`;
        continue;
      }
      cookieAt = fields.length + 1;
    }
    fields.push(name, value);
  }
  return fields;
}
