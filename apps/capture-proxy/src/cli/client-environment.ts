import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates } from "node:tls";

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
interface TrustPaths {
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

/** Where systems keep their roots in one file, in the order in which Go looks. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/pki/tls/cacert.pem",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** The same files in a directory of their own. */
interface TrustFiles extends TrustPaths {
  readonly directory: string;
  remove(): void;
}

/** Writes the files to a directory that only this user can read. `remove` deletes it; it is also deleted if writing fails. */
export function writeTrustFiles(caPem: string, environment: Readonly<Record<string, string | undefined>>): TrustFiles {
  const directory = mkdtempSync(join(tmpdir(), "weir-run-"));
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  try {
    return { directory, ...writtenFiles(directory, caPem, environment), remove };
  } catch (error) {
    remove();
    throw error;
  }
}

function writtenFiles(
  directory: string,
  caPem: string,
  environment: Readonly<Record<string, string | undefined>>,
): TrustPaths {
  const own = certificatesOf(caPem);
  const users = CA_VARIABLES.flatMap((name) => certificatesOf(readIfThere(environment[name])));
  const all = unique([...own, ...users, ...systemRoots()]);
  const write = (name: string, content: string | Uint8Array): string => {
    const path = join(directory, name);
    writeFileSync(path, content, { mode: 0o600, flag: "wx" });
    return path;
  };
  const bundle = write("roots-and-weir-ca.pem", pemText(all));
  return {
    bundle,
    extra: write("weir-ca.pem", pemText(unique([...own, ...users]))),
    javaStore: write("java-trust-store.p12", javaTrustStore(all.map((text) => Buffer.from(text, "base64")))),
    wgetrc: write(
      "wgetrc",
      `${readIfThere(environment["WGETRC"] ?? join(homedir(), ".wgetrc"))}\nca_certificate = ${bundle}\n`,
    ),
  };
}

function systemRoots(): string[] {
  for (const path of SYSTEM_BUNDLES) {
    const found = certificatesOf(readIfThere(path));
    if (found.length > 0) return found;
  }
  const listed = certificatesOf(getCACertificates("system").join("\n"));
  return listed.length > 0 ? listed : certificatesOf(getCACertificates("bundled").join("\n"));
}

function readIfThere(path: string | undefined): string {
  if (path === undefined || path === "") return "";
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** The certificates of a PEM text as base64 without line breaks. */
function certificatesOf(pem: string): string[] {
  const blocks = pem.matchAll(/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----([^-]*)-----END/g);
  return Array.from(blocks, ([, base64 = ""]) => base64.replace(/\s+/g, ""));
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

function pemText(certificates: readonly string[]): string {
  return certificates
    .map((text) => `-----BEGIN CERTIFICATE-----\n${text.replace(/.{64}(?=.)/g, "$&\n")}\n-----END CERTIFICATE-----\n`)
    .join("");
}

const DATA = "1.2.840.113549.1.7.1";
const CERTIFICATE_BAG = "1.2.840.113549.1.12.10.1.3";
const X509_CERTIFICATE = "1.2.840.113549.1.9.22.1";
const FRIENDLY_NAME = "1.2.840.113549.1.9.20";

/** Java trusts a certificate without a key only if it has this attribute. */
const TRUSTED_KEY_USAGE = "2.16.840.1.113894.746875.1.1";
const ANY_EXTENDED_KEY_USAGE = "2.5.29.37.0";
const sequence = (...content: readonly Uint8Array[]): Buffer => der(0x30, ...content);
const set = (...content: readonly Uint8Array[]): Buffer => der(0x31, ...content);
const octets = (...content: readonly Uint8Array[]): Buffer => der(0x04, ...content);
const explicit = (...content: readonly Uint8Array[]): Buffer => der(0xa0, ...content);

/**
 * A PKCS #12 file (RFC 7292) of trusted certificates (DER), as Java's `PKCS12` key store reads it without a password:
 * certificates are public, so nothing is encrypted, and without a password there is no integrity code either.
 */
export function javaTrustStore(certificates: readonly Uint8Array[]): Buffer {
  const bags = certificates.map((certificate, index) => certificateBag(certificate, `trusted-${index}`));
  const safeContents = sequence(...bags);
  const authenticatedSafe = sequence(dataContent(safeContents));
  return sequence(der(0x02, Buffer.from([3])), dataContent(authenticatedSafe));
}

function dataContent(content: Uint8Array): Buffer {
  return sequence(derObjectId(DATA), explicit(octets(content)));
}

function certificateBag(certificate: Uint8Array, alias: string): Buffer {
  const bag = sequence(derObjectId(X509_CERTIFICATE), explicit(octets(certificate)));
  const name = Buffer.from(alias, "utf16le").swap16();
  const attributes = set(
    sequence(derObjectId(FRIENDLY_NAME), set(der(0x1e, name))),
    sequence(derObjectId(TRUSTED_KEY_USAGE), set(derObjectId(ANY_EXTENDED_KEY_USAGE))),
  );
  return sequence(derObjectId(CERTIFICATE_BAG), explicit(bag), attributes);
}

/** One DER element: tag, definite length, content. */
export function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), derLength(body.length), body]);
}

/** An object identifier from its dotted form. */
export function derObjectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function derLength(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.from([0x80 + bytes.length, ...bytes]);
}

function base128(value: number): number[] {
  const bytes = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) bytes.unshift(128 + (rest % 128));
  return bytes;
}
