/** Variables by which programs find a proxy; curl reads only the lower-case form of the first. */
export const PROXY_VARIABLES: readonly string[] = [
  "http_proxy",
  "https_proxy",
  "all_proxy",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "ALL_PROXY",
  "YARN_HTTP_PROXY",
  "YARN_HTTPS_PROXY",
];

/** Variables that replace a program's roots: they get the whole bundle. */
const BUNDLE_VARIABLES = [
  "SSL_CERT_FILE",
  "CURL_CA_BUNDLE",
  "REQUESTS_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "PIP_CERT",
  "AWS_CA_BUNDLE",
  "CARGO_HTTP_CAINFO",
  "BUNDLE_SSL_CA_CERT",
  "HTTPLIB2_CA_CERTS",
  "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
  "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
  "PERL_LWP_SSL_CA_FILE",
  "HEX_CACERTS_PATH",
  "NIX_SSL_CERT_FILE",
  "YARN_HTTPS_CA_FILE_PATH",
];

/** Variables that add to a program's roots. */
const EXTRA_VARIABLES = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];

/** Variables that may name certificates a user trusts already; they are kept in the new bundle. */
export const CA_VARIABLES: readonly string[] = [...BUNDLE_VARIABLES, ...EXTRA_VARIABLES];

/** Files that add a CA to the ones a program trusts already. */
export interface TrustPaths {
  /** The system's roots, those of the user's own variables, and the CA. */
  readonly bundle: string;
  /** Only what comes in addition to a program's own roots. */
  readonly extra: string;
  /** The bundle as a PKCS #12 file for Java. */
  readonly javaStore: string;
  /** The user's wget configuration with the bundle added. */
  readonly wgetrc: string;
}

export interface ClientFacts {
  /** `http://127.0.0.1:8888` */
  readonly proxyUrl: string;
  readonly apiUrl: string;
  /** Hosts that are reached directly; empty sends everything through the proxy. */
  readonly noProxy: string;
  /** Undefined when there is no CA to trust: the user's own variables stay. */
  readonly trust: TrustPaths | undefined;
}

/**
 * The environment in which a program sends its traffic through the proxy and trusts its CA. A NO_PROXY of the user is
 * not kept: it lists what needs no proxy to be reached, and here the traffic is what is wanted.
 */
export function clientEnvironment(
  parent: Readonly<Record<string, string | undefined>>,
  facts: ClientFacts,
): Record<string, string | undefined> {
  return {
    ...parent,
    ...each(PROXY_VARIABLES, facts.proxyUrl),
    ...each(["no_proxy", "NO_PROXY"], facts.noProxy === "" ? undefined : facts.noProxy),
    ...(facts.trust === undefined ? {} : trustVariables(facts.trust)),
    NODE_USE_ENV_PROXY: "1",
    JAVA_TOOL_OPTIONS: [parent["JAVA_TOOL_OPTIONS"], ...javaOptions(facts)]
      .filter((option) => option !== undefined && option !== "")
      .join(" "),
    WEIR_API_URL: facts.apiUrl,
  };
}

function trustVariables({ bundle, extra, wgetrc }: TrustPaths): Record<string, string | undefined> {
  return { ...each(BUNDLE_VARIABLES, bundle), ...each(EXTRA_VARIABLES, extra), WGETRC: wgetrc };
}

function each(names: readonly string[], value: string | undefined): Record<string, string | undefined> {
  return Object.fromEntries(names.map((name) => [name, value]));
}

function javaOptions({ proxyUrl, trust, noProxy }: ClientFacts): string[] {
  const { hostname, port } = new URL(proxyUrl);
  const host = hostname.replace(/^\[|\]$/g, "");
  // Java bypasses the proxy for localhost by default. It separates hosts with bars.
  const direct = noProxy
    .split(",")
    .map((entry) => entry.trim().replace(/^\./, "*."))
    .filter((entry) => entry !== "");
  const options = [
    ...["http", "https"].flatMap((scheme) => [`-D${scheme}.proxyHost=${host}`, `-D${scheme}.proxyPort=${port}`]),
    `-Dhttp.nonProxyHosts=${direct.join("|")}`,
    ...(trust === undefined
      ? []
      : [`-Djavax.net.ssl.trustStore=${trust.javaStore}`, "-Djavax.net.ssl.trustStoreType=PKCS12"]),
  ];
  return options.map((option) => (/\s/.test(option) ? `"${option}"` : option));
}
