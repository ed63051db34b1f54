import { parseHostPort } from "@headworks/host-patterns";

/** Where a request goes. */
export interface RequestTarget {
  readonly scheme: "http" | "https";
  /** Lower-case name or address, no brackets. */
  readonly host: string;
  readonly port: number;
  /** Path and query as sent, at least `/`; `*` for OPTIONS. */
  readonly path: string;
  /** The authority as it was written, for the Host field. */
  readonly authority: string;
}

/**
 * An absolute-form target (RFC 9112, 3.2.2), or a sentence that says what is wrong with it. OPTIONS without a path
 * asks about the whole server (3.2.4).
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
  // Credentials in a URL are for the client; an origin never sees them in its Host field (RFC 9110, 4.2.4).
  const authority = written.slice(written.lastIndexOf("@") + 1);
  const place = parseHostPort(authority);
  if ("issue" in place) return `The host ${JSON.stringify(authority)} is not valid: ${place.issue}`;
  const after = rest.slice(authorityEnd);
  const fragment = after.indexOf("#");
  const pathAndQuery = fragment === -1 ? after : after.slice(0, fragment);
  const isServerWide = method === "OPTIONS" && pathAndQuery === "";
  const path = isServerWide ? "*" : pathAndQuery.startsWith("/") ? pathAndQuery : `/${pathAndQuery}`;
  return { scheme, host: place.host, port: place.port ?? (scheme === "https" ? 443 : 80), path, authority };
}

/** The `host:port` of CONNECT; the port is required. */
export function parseConnectTarget(target: string): { readonly host: string; readonly port: number } | string {
  const place = parseHostPort(target);
  if ("issue" in place) return `The target ${JSON.stringify(target)} is not valid: ${place.issue}`;
  if (place.port === undefined) return `The target ${JSON.stringify(target)} has no port`;
  return { host: place.host, port: place.port };
}

function firstOf(text: string, characters: string): number {
  for (let index = 0; index < text.length; index += 1) if (characters.includes(text[index] as string)) return index;
  return text.length;
}
