import type { TrafficEntry } from "@headworks/capture-contract";
import { type Cookie, parseCookies, parseSetCookie, type SetCookie } from "@headworks/http-fields";
import { span } from "./headers/decoded-value.ts";
import { headerValues } from "./headers/header-groups.ts";

/** Cookies the client sent. */
export function sentCookies(entry: Pick<TrafficEntry, "request">): Cookie[] {
  return parseCookies(headerValues(entry.request.headers_list, "cookie"));
}

/** Cookies the server set. */
export function receivedCookies(entry: Pick<TrafficEntry, "response">): SetCookie[] {
  return headerValues(entry.response?.headers_list ?? [], "set-cookie").map(parseSetCookie);
}

/** How many cookies went either way. */
export function cookieCount(entry: Pick<TrafficEntry, "request" | "response">): number {
  return sentCookies(entry).length + receivedCookies(entry).length;
}

/** When a cookie ends, in words; `receivedMs` is when the response came. */
export function cookieLife(cookie: SetCookie, receivedMs: number): string {
  const endMs = cookie.maxAgeSeconds === undefined ? cookie.expiresMs : receivedMs + cookie.maxAgeSeconds * 1000;
  if (endMs === undefined) return "Session";
  return endMs <= receivedMs ? "Removed" : span(endMs - receivedMs);
}

/** What is unsafe about a cookie; empty if nothing is. */
export function cookieConcerns(cookie: SetCookie, isSecureOrigin: boolean): string[] {
  const concerns: string[] = [];
  if (cookie.sameSite === "None" && !cookie.secure) {
    concerns.push("Browsers reject SameSite=None without Secure");
  }
  if (cookie.secure && !isSecureOrigin) concerns.push("Browsers reject Secure cookies set over plain HTTP");
  if (cookie.name.startsWith("__Host-") && (!cookie.secure || cookie.domain !== undefined || cookie.path !== "/")) {
    concerns.push("__Host- requires Secure, Path=/ and no Domain");
  }
  if (cookie.name.startsWith("__Secure-") && !cookie.secure) concerns.push("__Secure- requires Secure");
  return concerns;
}
