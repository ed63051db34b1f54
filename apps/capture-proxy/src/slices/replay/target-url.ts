import { hostPortText, parseHostPort } from "@headworks/host-patterns";

export interface TargetUrl {
  readonly scheme: "http" | "https";
  /** Lower-case name, or address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Path and query, at least `/`; `*` for OPTIONS of a URL without a path. */
  readonly path: string;
  /** Host with the port, unless it is the scheme's default; IPv6 in brackets. */
  readonly authority: string;
}

const URL_PARTS = /^(https?):\/\/([^/?#]*)([^#]*)/iu;

/**
 * Splits a URL without normalizing its path: captured requests are sent unchanged. Only characters invalid in a request
 * line (spaces, non-ASCII) are percent-encoded. Returns an error message for an invalid target.
 */
export function parseTarget(url: string, method: string): TargetUrl | string {
  const parts = URL_PARTS.exec(url);
  if (parts === null) return "must be an absolute http or https URL";
  const scheme = (parts[1] ?? "").toLowerCase() as "http" | "https";
  const authority = parts[2] ?? "";
  if (authority.includes("@")) return "must not contain credentials: use the Authorization header";
  const address = parseHostPort(asciiHost(authority));
  if ("issue" in address) return `has an invalid host: ${address.issue}`;
  const own = scheme === "https" ? 443 : 80;
  const port = address.port ?? own;
  return {
    scheme,
    host: address.host,
    port,
    path: pathOf(parts[3] ?? "", method),
    authority: hostPortText(address.host, port, own),
  };
}

/** Converts international names to Punycode. */
function asciiHost(authority: string): string {
  if (/^[\0-\x7f]*$/u.test(authority)) return authority;
  return URL.canParse(`http://${authority}`) ? new URL(`http://${authority}`).host : authority;
}

function pathOf(written: string, method: string): string {
  if (written === "") return method === "OPTIONS" ? "*" : "/";
  const path = written.startsWith("/") ? written : `/${written}`;
  return path.replaceAll(/[^\x21-\x7e]+/gu, (text) => encodeURIComponent(text.toWellFormed()));
}
