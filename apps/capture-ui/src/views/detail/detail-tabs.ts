import type { TrafficEntry } from "@headworks/capture-contract";
import { type Cookie, parseCookies, parseQuery, parseSetCookie, type SetCookie } from "@headworks/http-fields";
import { DETAIL_TABS, type DetailTab } from "./detail-memory.ts";
import { span } from "./headers/decoded-value.ts";
import { headerValues } from "./headers/header-groups.ts";

export type Request = TrafficEntry["request"];

export function hasForm(request: Pick<Request, "content_type" | "body_stored_size">): boolean {
  return /^application\/x-www-form-urlencoded\b/iu.test(request.content_type ?? "") && request.body_stored_size > 0;
}

export function tabsOf(entry: TrafficEntry, hasStream: boolean): readonly DetailTab[] {
  const isThere: Readonly<Record<DetailTab, boolean>> = {
    overview: true,
    // A tunnel's bytes are not decoded; only a failure response is a message.
    messages: !entry.is_passthrough || (entry.response?.body_stored_size ?? 0) > 0,
    stream: hasStream,
    params: !entry.is_passthrough && (hasForm(entry.request) || parseQuery(entry.request.url).length > 0),
    cookies: cookieCount(entry) > 0,
    timing: true,
  };
  return DETAIL_TABS.filter((tab) => isThere[tab]);
}

export function sentCookies(entry: Pick<TrafficEntry, "request">): Cookie[] {
  return parseCookies(headerValues(entry.request.headers_list, "cookie"));
}

export function receivedCookies(entry: Pick<TrafficEntry, "response">): SetCookie[] {
  return headerValues(entry.response?.headers_list ?? [], "set-cookie").map(parseSetCookie);
}

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

/** Part of a URL; `strong` parts are emphasised. */
interface UrlPart {
  readonly text: string;
  readonly strong: boolean;
}

/** Splits a URL for display, emphasising host and parameter names. The parts join to the URL. */
export function urlParts(url: string): UrlPart[] {
  const match = /^([a-z][a-z\d+.-]*:\/\/)?([^/?#]*)([^?#]*)(\?[^#]*)?(#[\s\S]*)?$/iu.exec(url);
  if (match === null) return [{ text: url, strong: true }];
  const [, scheme = "", host = "", path = "", query = "", fragment = ""] = match;
  const parts: UrlPart[] = [
    { text: scheme, strong: false },
    { text: host, strong: true },
    { text: path, strong: false },
  ];
  if (query !== "") {
    parts.push({ text: "?", strong: false });
    for (const [index, pair] of query.slice(1).split("&").entries()) {
      const equals = pair.indexOf("=");
      if (index > 0) parts.push({ text: "&", strong: false });
      parts.push({ text: equals < 0 ? pair : pair.slice(0, equals + 1), strong: true });
      if (equals >= 0) parts.push({ text: pair.slice(equals + 1), strong: false });
    }
  }
  parts.push({ text: fragment, strong: false });
  return parts.filter((part) => part.text !== "");
}
