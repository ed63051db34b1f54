import { hostPortText, parseHostPort } from "@headworks/host-patterns";

/** Where a URL leads. */
export interface TargetUrl {
  readonly scheme: "http" | "https";
  /** Lower-case name or address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Path and query, at least `/`; `*` for OPTIONS of a URL without a path. */
  readonly path: string;
  /** Host with the port, unless that is the scheme's own; IPv6 in brackets. */
  readonly authority: string;
}

const URL_PARTS = /^(https?):\/\/([^/?#]*)([^#]*)/iu;

/**
 * Takes a URL apart without changing its path: what was captured is sent as it was. Only what no request line can
 * have (spaces, characters beyond ASCII) is percent-encoded. Gives a sentence when it leads nowhere.
 */
export function parseTarget(url: string, method: string): TargetUrl | string {
  const parts = URL_PARTS.exec(url);
  if (parts === null) return "must be an absolute URL of http or https";
  const scheme = (parts[1] ?? "").toLowerCase() as "http" | "https";
  const authority = parts[2] ?? "";
  if (authority.includes("@")) return "must not have credentials: put them into the field Authorization";
  const place = parseHostPort(asciiHost(authority));
  if ("issue" in place) return `has a host that is not valid: ${place.issue}`;
  const own = scheme === "https" ? 443 : 80;
  const port = place.port ?? own;
  return {
    scheme,
    host: place.host,
    port,
    path: pathOf(parts[3] ?? "", method),
    authority: hostPortText(place.host, port, own),
  };
}

/** Names in other scripts become what the name service knows. */
function asciiHost(authority: string): string {
  if (/^[\0-\x7f]*$/u.test(authority)) return authority;
  return URL.canParse(`http://${authority}`) ? new URL(`http://${authority}`).host : authority;
}

function pathOf(written: string, method: string): string {
  if (written === "") return method === "OPTIONS" ? "*" : "/";
  const path = written.startsWith("/") ? written : `/${written}`;
  return path.replaceAll(/[^\x21-\x7e]+/gu, (text) => encodeURIComponent(text.toWellFormed()));
}
