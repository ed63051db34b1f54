import type { RequestMessage, Scheme } from "#exchange/exchange.ts";

/** Where a request goes, and with what path. */
export interface Place {
  readonly scheme: "http" | "https";
  /** Lower case, without brackets. */
  readonly host: string;
  readonly port: number;
  /** Path and query as written; empty when the URL ends with its authority. */
  readonly path: string;
}

const URL_PARTS = /^(https?|wss?):\/\/([^/?#\\]*)((?:[/?][^#]*)?)(?:#|$)/i;

/**
 * Reads an absolute URL without touching a byte of its path and query, but for those that no request line can have:
 * they are percent-encoded. A fragment is left out. A sentence when it is none, or names a user.
 */
export function readPlace(url: string): Place | string {
  const [, scheme = "", authority = "", path = ""] = URL_PARTS.exec(url) ?? [];
  if (scheme === "") return "is no absolute http or https URL";
  if (authority.includes("@")) return "must not have a user name";
  const isSecure = /^(?:https|wss)$/i.test(scheme);
  const base = isSecure ? "https" : "http";
  let parsed: URL;
  try {
    parsed = new URL(`${base}://${authority}/`);
  } catch {
    return "has no host that can be read";
  }
  if (parsed.hostname === "" || parsed.pathname !== "/") return "has no host that can be read";
  return {
    scheme: base,
    host: parsed.hostname.replace(/^\[|\]$/g, ""),
    port: parsed.port === "" ? (isSecure ? 443 : 80) : Number(parsed.port),
    path: withSendableCharacters(path.startsWith("?") ? `/${path}` : path),
  };
}

/** Everything but visible ASCII, percent-encoded as UTF-8. */
function withSendableCharacters(path: string): string {
  return path.replace(/[^\x21-\x7e]+/g, (run) =>
    Buffer.from(run, "utf8").reduce(
      (text, octet) => `${text}%${octet.toString(16).toUpperCase().padStart(2, "0")}`,
      "",
    ),
  );
}

/** Puts a request somewhere else. A WebSocket stays one. True when that changes anything. */
export function isElsewhere(request: Readonly<RequestMessage>, place: Place): boolean {
  return (
    request.host !== place.host ||
    request.port !== place.port ||
    request.scheme !== schemeFor(request, place) ||
    request.path !== (place.path === "" ? "/" : place.path)
  );
}

/** Carries out what {@link isElsewhere} found. */
export function moveRequest(request: RequestMessage, place: Place): void {
  request.scheme = schemeFor(request, place);
  request.host = place.host;
  request.port = place.port;
  request.path = place.path === "" ? "/" : place.path;
}

function schemeFor({ scheme }: Readonly<RequestMessage>, place: Place): Scheme {
  const isWebSocket = scheme === "ws" || scheme === "wss";
  if (!isWebSocket) return place.scheme;
  return place.scheme === "https" ? "wss" : "ws";
}

/**
 * The place a request is mapped to. A target whose path is left out or ends in `/` is put before the request's path, any
 * other path replaces it; a query of the target replaces the request's, even an empty one behind a `?`.
 */
export function mappedPlace(target: Place, requestPath: string): Place {
  const [path, query] = splitQuery(target.path);
  const [ownPath, ownQuery] = splitQuery(requestPath);
  const isBase = path === "" || path.endsWith("/");
  const joined = isBase ? path.slice(0, -1) + (ownPath.startsWith("/") ? ownPath : `/${ownPath}`) : path;
  const taken = query ?? ownQuery;
  return { ...target, path: taken === undefined || taken === "" ? joined : `${joined}?${taken}` };
}

/** Path and query without the question mark; undefined without one. */
export function splitQuery(path: string): readonly [string, string | undefined] {
  const mark = path.indexOf("?");
  return mark === -1 ? [path, undefined] : [path.slice(0, mark), path.slice(mark + 1)];
}
