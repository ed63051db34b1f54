import { isIP } from "node:net";
import type { Upstream } from "@headworks/gateway-contract";
import { canonicalHost, hostPortText, parseHostPort } from "@headworks/host-patterns";

/** What the field Host of requests for an upstream says: its endpoint, what the client asked for, or a name. */
export type UpstreamHost = "endpoint" | "preserve" | { readonly name: string };

/** Reads `upstream_host` of a document that was checked. */
export function compileUpstreamHost(text = "endpoint"): UpstreamHost {
  return text === "endpoint" || text === "preserve" ? text : { name: hostText(text) };
}

/** A host with a port or without, as it stands in Host: lower case, A-labels, no final dot (RFC 9110 section 7.2). */
function hostText(text: string): string {
  const parsed = parseHostPort(text);
  if ("issue" in parsed) return text;
  const host = canonicalHost(parsed.host);
  return hostPortText(host, parsed.port ?? NO_PORT, parsed.port === undefined ? NO_PORT : undefined);
}

const NO_PORT = 0;

const isSecure = ({ protocol }: Upstream): boolean => protocol === "https" || protocol === "http2";

/** An endpoint of an upstream: its name or address, and its port. */
interface EndpointPlace {
  readonly address: string;
  readonly port: number;
}

/**
 * The name of an endpoint, else its address: one that was found by the name of `dns_discovery` is asked for by that name, since its
 * address is no more than where that leads today.
 */
function endpointName({ endpoints = [], dns_discovery: discovery }: Upstream, address: string): string {
  const bare = address.startsWith("[") && address.endsWith("]") ? address.slice(1, -1) : address;
  const isFound =
    discovery !== undefined && isIP(bare) !== 0 && !endpoints.some((listed) => listed.address === address);
  return canonicalHost(isFound ? discovery.hostname : bare);
}

/** Host of requests for an endpoint by its own name or address, without the port that the scheme implies. */
export function endpointHost(document: Upstream, { address, port }: EndpointPlace): string {
  return hostPortText(endpointName(document, address), port, isSecure(document) ? 443 : 80);
}

/** Host of probes: what the document says for them, else the name that requests get, else the endpoint. */
export function probeHost(document: Upstream, endpoint: EndpointPlace): string {
  const { active_health: health, upstream_host: host } = document;
  if (health?.host !== undefined) return hostText(health.host);
  const rule = compileUpstreamHost(host);
  return typeof rule === "string" ? endpointHost(document, endpoint) : rule.name;
}

/**
 * The name that TLS asks an endpoint for (RFC 6066 section 3: no address, no final dot) and that its certificate must have:
 * `tls.server_name`, else a name in `upstream_host`, else the endpoint's own. Undefined for an address, which the certificate
 * must then have. It is the same for all clients, since they share connections.
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
