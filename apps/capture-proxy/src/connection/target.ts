import { parseHostPort } from "@headworks/host-patterns";
import type { Scheme } from "#exchange/exchange.ts";

export interface RequestTarget {
  readonly scheme: "http" | "https";
  /** Lower-case name or address, no brackets. */
  readonly host: string;
  readonly port: number;
  /** Path and query as sent, at least `/`; `*` for OPTIONS. */
  readonly path: string;
  /** The authority as written, for the Host field. */
  readonly authority: string;
}

/**
 * Parses an absolute-form target (RFC 9112, 3.2.2), or returns a sentence with the error. OPTIONS without a path
 * addresses the whole server (3.2.4).
 */
export function parseAbsoluteTarget(target: string, method: string): RequestTarget | string {
  const schemeEnd = target.indexOf("://");
  const scheme = target.slice(0, Math.max(0, schemeEnd)).toLowerCase();
  if (scheme !== "http" && scheme !== "https") {
    return scheme === "" ? "A proxy request needs an absolute URL" : `The scheme ${scheme} cannot be proxied`;
  }
  const rest = target.slice(schemeEnd + 3);
  const authorityEnd = firstOf(rest, "/?#");
  const written = rest.slice(0, authorityEnd);
  // Userinfo must not reach the origin's Host field (RFC 9110, 4.2.4).
  const named = written.slice(written.lastIndexOf("@") + 1);
  // An empty port means the scheme's default (RFC 3986, 3.2.3) and is left out of Host.
  const authority = named.endsWith(":") ? named.slice(0, -1) : named;
  const place = parseHostPort(authority);
  if ("issue" in place) return `The host ${JSON.stringify(authority)} is not valid: ${place.issue}`;
  const after = rest.slice(authorityEnd);
  const fragment = after.indexOf("#");
  const pathAndQuery = fragment === -1 ? after : after.slice(0, fragment);
  const isServerWide = method === "OPTIONS" && pathAndQuery === "";
  const path = isServerWide ? "*" : pathAndQuery.startsWith("/") ? pathAndQuery : `/${pathAndQuery}`;
  return { scheme, host: place.host, port: place.port ?? (scheme === "https" ? 443 : 80), path, authority };
}

/** Parses the `host:port` of CONNECT; the port is required. */
export function parseConnectTarget(target: string): { readonly host: string; readonly port: number } | string {
  const place = parseHostPort(target);
  if ("issue" in place) return `The target ${JSON.stringify(target)} is not valid: ${place.issue}`;
  if (place.port === undefined) return `The target ${JSON.stringify(target)} has no port`;
  return { host: place.host, port: place.port };
}

/** The URL parts shown for a request that is not forwarded. */
export interface ShownTarget extends Pick<RequestTarget, "host" | "port" | "path"> {
  readonly scheme: Scheme;
}

/**
 * The URL parts of a target that cannot be served; undefined if it has no valid host. An unsupported scheme is shown
 * as `tcp`, a missing or invalid port as 0.
 */
export function shownTarget(target: string): ShownTarget | undefined {
  const [, written = "", authority = "", rest = ""] = TARGET.exec(target) ?? [];
  const [, name = "", port = ""] = AUTHORITY.exec(authority.slice(authority.lastIndexOf("@") + 1)) ?? [];
  const place = parseHostPort(name);
  if ("issue" in place || place.port !== undefined) return undefined;
  const lower = written.toLowerCase();
  const scheme = Object.keys(WEB_PORTS).find((known): known is WebScheme => known === lower) ?? "tcp";
  const shownPort = port === "" && scheme !== "tcp" ? WEB_PORTS[scheme] : portOf(port);
  const path = rest.startsWith("/") ? rest : `/${rest}`;
  return { scheme, host: place.host, port: shownPort, path };
}

type WebScheme = Exclude<Scheme, "tcp">;

const WEB_PORTS: Readonly<Record<WebScheme, number>> = { http: 80, https: 443, ws: 80, wss: 443 };
const TARGET = /^(?:([a-z][a-z\d+.-]*):\/\/)?([^/?#]*)([^#]*)/is;
const AUTHORITY = /^(.*?)(?::([^:\]]*))?$/s;

function portOf(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port <= 65_535 ? port : 0;
}

function firstOf(text: string, characters: string): number {
  for (let index = 0; index < text.length; index += 1) if (characters.includes(text[index] as string)) return index;
  return text.length;
}
