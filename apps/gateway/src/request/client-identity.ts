/**
 * What a header says by which proxies tell upstreams about a client: `address`, who it is; `request`, what it asked for
 * and over what, which changes what an upstream responds with.
 */
export type IdentityKind = "address" | "request";

/** Families of which every member counts, known or not. */
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

/** The name as programs read it that know no other separator: CGI makes `_` of `-`, some of every other sign. */
export const dashedName = (lowerName: string): string => lowerName.replace(/[^a-z0-9]/g, "-");

/** Says what a header in lower case, with dashes, tells about the client; undefined for every other header. */
export function identityKind(dashed: string): IdentityKind | undefined {
  if (ADDRESSES.has(dashed)) return "address";
  return OTHERS.has(dashed) || PREFIXES.some((prefix) => dashed.startsWith(prefix)) ? "request" : undefined;
}
