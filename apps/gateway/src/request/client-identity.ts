import {
  formatPlainAddress,
  type IpNetwork,
  networkContains,
  parseAddress,
  parseNetwork,
} from "@headworks/host-patterns";
import { fieldValues, type RawFields } from "@headworks/http1";

/** The proxies whose `X-Forwarded-For` is trusted. */
export class TrustedProxies {
  readonly #networks: readonly IpNetwork[];

  /** Takes addresses and CIDR networks; other texts are skipped, since validation has refused them. */
  constructor(networks: readonly string[]) {
    this.#networks = networks.map((text) => parseNetwork(text)).filter((network) => network !== undefined);
  }

  includes(address: string): boolean {
    if (this.#networks.length === 0) return false;
    const parsed = parseAddress(address);
    return parsed !== undefined && this.#networks.some((network) => networkContains(network, parsed));
  }

  /**
   * The client's address: the peer's, unless the peer is trusted; then the first untrusted address of
   * `X-Forwarded-For` from right to left, in canonical spelling. Empty members are ignored (RFC 9110 section
   * 5.6.1.2); a member without an address ends the walk at the previous one.
   */
  clientAddress(peer: string, fields: Readonly<RawFields>): string {
    if (!this.includes(peer)) return peer;
    const members = fieldValues(fields, "x-forwarded-for").join(",").split(",").toReversed();
    let client = peer;
    for (const member of members) {
      const text = member.trim();
      if (text === "") continue;
      const address = addressOf(text);
      if (address === undefined) return client;
      client = address;
      if (!this.includes(address)) return client;
    }
    return client;
  }
}

/** An IPv4 address with an optional port, or an IPv6 address in brackets with an optional port. */
const WITH_PORT = /^(?:([0-9.]+):[0-9]{1,5}|\[([^\]]*:[^\]]*)\](?::[0-9]{1,5})?)$/;

/**
 * What a header tells upstreams about a client: `address`, its identity; `request`, the requested URL or protocol,
 * which affects the upstream's response.
 */
export type IdentityKind = "address" | "request";

/** Header families: each name with such a prefix counts. */
const PREFIXES = [
  "forwarded-",
  "ssl-client-",
  "x-arr-",
  "x-auth-request-",
  "x-client-cert",
  "x-envoy-",
  "x-forwarded",
  "x-original-",
  "x-rewrite-",
  "x-ssl-",
] as const;

const ADDRESSES: ReadonlySet<string> = new Set([
  "cf-connecting-ip",
  "cf-connecting-ipv6",
  "cf-pseudo-ipv4",
  "client-ip",
  "cloudfront-viewer-address",
  "fastly-client-ip",
  "fly-client-ip",
  "forwarded",
  "forwarded-for",
  "remote-addr",
  "true-client-ip",
  "x-appengine-user-ip",
  "x-azure-clientip",
  "x-azure-socketip",
  "x-client-ip",
  "x-cluster-client-ip",
  "x-envoy-external-address",
  "x-envoy-original-dst-host",
  "x-envoy-peer-metadata",
  "x-envoy-peer-metadata-id",
  "x-forward-for",
  "x-forwarded",
  "x-forwarded-for",
  "x-nf-client-connection-ip",
  "x-original-forwarded-for",
  "x-originating-ip",
  "x-proxyuser-ip",
  "x-real-ip",
  "x-real-port",
  "x-remote-addr",
  "x-remote-ip",
  "x-sucuri-clientip",
  "x-vercel-forwarded-for",
]);

const OTHERS: ReadonlySet<string> = new Set([
  "cf-ipcountry",
  "cf-visitor",
  // RFC 9440.
  "client-cert",
  "client-cert-chain",
  "cloudfront-forwarded-proto",
  "cloudfront-viewer-country",
  "fastly-ssl",
  "front-end-https",
  "remote-user",
  "x-amzn-mtls-clientcert",
  "x-amzn-mtls-clientcert-leaf",
  "x-amzn-mtls-clientcert-serial-number",
  "x-amzn-mtls-clientcert-subject",
  "x-appengine-country",
  "x-base-url",
  "x-host",
  "x-http-destinationurl",
  "x-http-host-override",
  "x-http-method",
  "x-http-method-override",
  "x-method-override",
  "x-override-url",
  "x-proxy-url",
  "x-real-host",
  "x-real-proto",
  "x-remote-user",
  "x-request-uri",
  "x-scheme",
  "x-script-name",
  "x-server-name",
  "x-tls-client-cert",
  "x-url-scheme",
  "x-verified-client-cert",
  "x-webauth-user",
]);

/** The name as CGI and similar programs see it, which map `-`, or any other separator, to `_`. */
export const dashedName = (lowerName: string): string => lowerName.replace(/[^a-z0-9]/g, "-");

/** The kind of a header given in lower case with dashes; undefined for headers that say nothing about the client. */
export function identityKind(dashed: string): IdentityKind | undefined {
  if (ADDRESSES.has(dashed)) return "address";
  return OTHERS.has(dashed) || PREFIXES.some((prefix) => dashed.startsWith(prefix)) ? "request" : undefined;
}

/** The address of a member, which proxies may write with a port, in brackets (`[2001:db8::9]:51234`) and in quotes. */
function addressOf(member: string): string | undefined {
  const node = /^"(.*)"$/.exec(member)?.[1] ?? member;
  const [, v4, v6] = WITH_PORT.exec(node) ?? [];
  const address = v4 ?? v6 ?? node;
  const parsed = parseAddress(address);
  return parsed === undefined ? undefined : formatPlainAddress(parsed);
}
