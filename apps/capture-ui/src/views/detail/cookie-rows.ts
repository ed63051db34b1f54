import type { TrafficEntry } from "@headworks/capture-contract";
import { type Cookie, parseCookies, parseSetCookie, type SetCookie } from "@headworks/http-fields";
import { span } from "./headers/decoded-value.ts";
import { headerValues } from "./headers/header-groups.ts";

export function sentCookies(entry: Pick<TrafficEntry, "request">): Cookie[] {
  return parseCookies(headerValues(entry.request.headers_list, "cookie"));
}

export function receivedCookies(entry: Pick<TrafficEntry, "response">): SetCookie[] {
  return headerValues(entry.response?.headers_list ?? [], "set-cookie").map(parseSetCookie);
}

/** Number of cookies in both directions. */
export function cookieCount(entry: Pick<TrafficEntry, "request" | "response">): number {
  return sentCookies(entry).length + receivedCookies(entry).length;
}

/** Lifetime of a cookie in words; `receivedMs` is the time of the response. */
export function cookieLife(cookie: SetCookie, receivedMs: number): string {
  const endMs = cookie.maxAgeSeconds === undefined ? cookie.expiresMs : receivedMs + cookie.maxAgeSeconds * 1000;
  if (endMs === undefined) return "Session";
  return endMs <= receivedMs ? "Removed" : span(endMs - receivedMs);
}

/** Security concerns of a cookie; empty if none. */
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
