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
