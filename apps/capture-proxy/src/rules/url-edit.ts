import type { RequestMessage, Scheme } from "#exchange/exchange.ts";

export interface UrlTarget {
  readonly scheme: "http" | "https";
  /** Lower case, without brackets. */
  readonly host: string;
  readonly port: number;
  /** Path and query as written; empty when the URL ends with its authority. */
  readonly path: string;
}

const URL_PARTS = /^(https?|wss?):\/\/([^/?#\\]*)((?:[/?][^#]*)?)(?:#|$)/i;

/**
 * Parses an absolute URL without normalizing path and query; only characters invalid in a request line are
 * percent-encoded. The fragment is dropped. Returns an error message for other URLs and for ones with a user name.
 */
export function parseUrlTarget(url: string): UrlTarget | string {
  const [, scheme = "", authority = "", path = ""] = URL_PARTS.exec(url) ?? [];
  if (scheme === "") return "is not an absolute http or https URL";
  if (authority.includes("@")) return "must not have a user name";
  const isSecure = /^(?:https|wss)$/i.test(scheme);
  const base = isSecure ? "https" : "http";
  let parsed: URL;
  try {
    parsed = new URL(`${base}://${authority}/`);
  } catch {
    return "has an invalid host";
  }
  if (parsed.hostname === "" || parsed.pathname !== "/") return "has an invalid host";
  return {
    scheme: base,
    host: parsed.hostname.replace(/^\[|\]$/g, ""),
    port: parsed.port === "" ? (isSecure ? 443 : 80) : Number(parsed.port),
    path: withSendableCharacters(path.startsWith("?") ? `/${path}` : path),
  };
}

/** Percent-encodes everything except visible ASCII, as UTF-8. */
function withSendableCharacters(path: string): string {
  return path.replace(/[^\x21-\x7e]+/g, (run) =>
    Buffer.from(run, "utf8").reduce(
      (text, octet) => `${text}%${octet.toString(16).toUpperCase().padStart(2, "0")}`,
      "",
    ),
  );
}

export function changesUrl(request: Readonly<RequestMessage>, target: UrlTarget): boolean {
  return (
    request.host !== target.host ||
    request.port !== target.port ||
    request.scheme !== schemeFor(request, target) ||
    request.path !== (target.path === "" ? "/" : target.path)
  );
}

export function moveRequest(request: RequestMessage, target: UrlTarget): void {
  request.scheme = schemeFor(request, target);
  request.host = target.host;
  request.port = target.port;
  request.path = target.path === "" ? "/" : target.path;
}

function schemeFor({ scheme }: Readonly<RequestMessage>, target: UrlTarget): Scheme {
  const isWebSocket = scheme === "ws" || scheme === "wss";
  if (!isWebSocket) return target.scheme;
  return target.scheme === "https" ? "wss" : "ws";
}

/**
 * The mapped target of a request. A target path that is empty or ends in `/` is a prefix of the request's path; any
 * other path replaces it. The target's query, even an empty one, replaces the request's.
 */
export function mappedTarget(target: UrlTarget, requestPath: string): UrlTarget {
  const [path, query] = splitQuery(target.path);
  const [ownPath, ownQuery] = splitQuery(requestPath);
  const isBase = path === "" || path.endsWith("/");
  const joined = isBase ? path.slice(0, -1) + (ownPath.startsWith("/") ? ownPath : `/${ownPath}`) : path;
  const taken = query ?? ownQuery;
  return { ...target, path: taken === undefined || taken === "" ? joined : `${joined}?${taken}` };
}

/** Path and query without the question mark. */
export function splitQuery(path: string): readonly [string, string | undefined] {
  const mark = path.indexOf("?");
  return mark === -1 ? [path, undefined] : [path.slice(0, mark), path.slice(mark + 1)];
}
