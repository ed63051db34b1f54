import { canonicalHost } from "@headworks/host-patterns";

const ORIGIN = /^([a-z][a-z0-9+.-]*):\/\/((?:\[[0-9a-f:.]+\]|[^\s/?#@\\[\]:,*]+)(?::[0-9]{1,5})?)$/;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: ":80", https: ":443", ws: ":80", wss: ":443" };

/**
 * Normalizes an origin (RFC 6454): lower case, IDNs as A-labels, without the default port; undefined for an invalid
 * origin and for `null`.
 */
export function normalOrigin(text: string): string | undefined {
  const [, scheme, host] = ORIGIN.exec(text.toLowerCase()) ?? [];
  if (scheme === undefined || host === undefined) return undefined;
  const port = Object.hasOwn(DEFAULT_PORTS, scheme) ? DEFAULT_PORTS[scheme] : undefined;
  const bare = port !== undefined && host.endsWith(port) ? host.slice(0, -port.length) : host;
  return `${scheme}://${/[^\x00-\x7f]/.test(bare) ? wireHost(bare) : bare}`;
}

function wireHost(host: string): string {
  const [, name = "", port = ""] = /^(.*?)(:[0-9]+)?$/.exec(host) ?? [];
  return `${canonicalHost(name)}${port}`;
}
