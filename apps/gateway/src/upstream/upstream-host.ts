import { isIP } from "node:net";
import type { Upstream } from "@headworks/gateway-contract";
import { canonicalHost, hostPortText, parseHostPort } from "@headworks/host-patterns";

/** Host of requests to an upstream: its endpoint's, the client's, or a fixed name. */
export type UpstreamHost = "endpoint" | "preserve" | { readonly name: string };

/** Parses a validated `upstream_host`. */
export function compileUpstreamHost(text = "endpoint"): UpstreamHost {
  return text === "endpoint" || text === "preserve" ? text : { name: hostText(text) };
}

/** Host with an optional port in canonical form: lower case, A-labels, no final dot (RFC 9110 section 7.2). */
function hostText(text: string): string {
  const parsed = parseHostPort(text);
  if ("issue" in parsed) return text;
  const host = canonicalHost(parsed.host);
  return hostPortText(host, parsed.port ?? NO_PORT, parsed.port === undefined ? NO_PORT : undefined);
}

const NO_PORT = 0;

const isSecure = ({ protocol }: Upstream): boolean => protocol === "https" || protocol === "http2";

interface EndpointPlace {
  readonly address: string;
  readonly port: number;
}

/**
 * The name of an endpoint, else its address. Discovered endpoints have the name of `dns_discovery`, since their
 * addresses change.
 */
function endpointName({ endpoints = [], dns_discovery: discovery }: Upstream, address: string): string {
  const bare = address.startsWith("[") && address.endsWith("]") ? address.slice(1, -1) : address;
  const isFound =
    discovery !== undefined && isIP(bare) !== 0 && !endpoints.some((listed) => listed.address === address);
  return canonicalHost(isFound ? discovery.hostname : bare);
}

/** Host of requests with the endpoint's own name or address, without the scheme's default port. */
export function endpointHost(document: Upstream, { address, port }: EndpointPlace): string {
  return hostPortText(endpointName(document, address), port, isSecure(document) ? 443 : 80);
}

/** Host of probes: the configured one, else that of requests, else the endpoint's. */
export function probeHost(document: Upstream, endpoint: EndpointPlace): string {
  const { active_health: health, upstream_host: host } = document;
  if (health?.host !== undefined) return hostText(health.host);
  const rule = compileUpstreamHost(host);
  return typeof rule === "string" ? endpointHost(document, endpoint) : rule.name;
}

/**
 * The SNI name (RFC 6066 section 3: no address, no final dot), which the certificate must match: `tls.server_name`,
 * else a name in `upstream_host`, else the endpoint's own. Undefined for an address, which the certificate must then
 * match. Equal for all clients, since they share connections.
 */
export function tlsName(document: Upstream, address: string): string | undefined {
  const rule = compileUpstreamHost(document.upstream_host);
  const fixed = typeof rule === "string" ? undefined : nameOf(rule.name);
  const name = document.tls?.server_name ?? fixed ?? endpointName(document, address);
  const canonical = canonicalHost(name);
  return isIP(canonical) === 0 ? canonical : undefined;
}

function nameOf(host: string): string | undefined {
  const parsed = parseHostPort(host);
  return "issue" in parsed || isIP(parsed.host) !== 0 ? undefined : parsed.host;
}
