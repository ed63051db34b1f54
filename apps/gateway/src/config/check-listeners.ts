import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { type ConfigDocument, DEFAULT_ADMIN_BIND, type Listener, type ListenerTls } from "@headworks/gateway-contract";
import { canonicalHost, isLoopback, isUnspecified, parseAddress, parseHostPort } from "@headworks/host-patterns";
import type { IssueReport } from "#slice.ts";
import type { FileReader } from "./file-reader.ts";
import type { FieldPath } from "./pointer.ts";
import { named } from "./structure.ts";

interface TlsSurroundings {
  readonly files: FileReader;
  readonly nowMs: number;
  /** `GATEWAY_ADMIN_DEV=1`. */
  readonly isDevelopment: boolean;
}

/** Checks addresses of listeners and the admin API, and all TLS files. */
export function checkListeners(
  document: ConfigDocument,
  report: IssueReport,
  { files: reader, nowMs, isDevelopment }: TlsSurroundings,
): void {
  const files = new TlsFiles(report, reader, nowMs);
  document.listeners.forEach((listener, at) => checkListener(listener, ["listeners", at], report, files));
  checkAdmin(document, report, files, isDevelopment);
  checkCollisions(document, report);
  for (const [at, upstream] of document.upstreams.entries()) {
    const fieldPath = ["upstreams", at];
    const { tls, trusted_ca_file: roots, protocol = "http1" } = upstream;
    const isPlain = protocol === "http1" || protocol === "h2c";
    for (const [field, value] of [
      ["tls", tls],
      ["trusted_ca_file", roots],
    ] as const) {
      if (value === undefined || !isPlain) continue;
      const message = `The upstream "${upstream.name}" speaks ${protocol}, which has no TLS; use https or http2`;
      report.error("bad_value", [...fieldPath, field], message);
    }
    if (roots !== undefined && tls?.trusted_ca_file !== undefined) {
      const message = `The upstream "${upstream.name}" has trusted_ca_file twice; keep the one under "tls"`;
      report.error("duplicate_setting", [...fieldPath, "trusted_ca_file"], message);
    }
    files.checkRoots(roots, [...fieldPath, "trusted_ca_file"]);
    files.checkRoots(tls?.trusted_ca_file, [...fieldPath, "tls", "trusted_ca_file"]);
    const client = { cert: tls?.client_cert_file, key: tls?.client_key_file };
    files.checkPair(client, [...fieldPath, "tls"], ["client_cert_file", "client_key_file"]);
  }
  for (const [at, { trusted_ca_file: roots }] of (document.gateway.jwt_providers ?? []).entries()) {
    files.checkRoots(roots, ["gateway", "jwt_providers", at, "trusted_ca_file"]);
  }
}

function checkListener(listener: Listener, fieldPath: FieldPath, report: IssueReport, files: TlsFiles): void {
  const title = `The listener "${listener.name}"`;
  if (parseAddress(listener.address) === undefined && !/^[A-Za-z0-9.-]+$/.test(listener.address)) {
    const hint = /:[0-9]+$/.test(listener.address) ? "; the port is a field of its own" : "";
    const all = /^(?:\*|)(?::[0-9]+)?$/.test(listener.address) ? ", and every address is 0.0.0.0 or ::" : "";
    const message = `${title} needs an IP address or a host name as its address${hint}${all}`;
    report.error("bad_value", [...fieldPath, "address"], message);
  }
  const { tls } = listener;
  if (listener.protocol !== "https") {
    if (tls !== undefined) {
      report.error("bad_value", [...fieldPath, "tls"], `${title} has tls but does not speak it; set protocol to https`);
    }
    return;
  }
  if (tls === undefined) {
    report.error("required", [...fieldPath, "tls"], `${title} speaks https, so it needs tls with a certificate`);
    return;
  }
  const certificates = tls.certificates ?? [];
  if (tls.cert_file === undefined && tls.key_file === undefined && certificates.length === 0) {
    report.error("required", [...fieldPath, "tls", "cert_file"], `${title} has no certificate`);
  }
  files.checkPair({ cert: tls.cert_file, key: tls.key_file }, [...fieldPath, "tls"], ["cert_file", "key_file"]);
  for (const [at, entry] of certificates.entries()) {
    const own = [...fieldPath, "tls", "certificates", at];
    files.checkPair({ cert: entry.cert_file, key: entry.key_file }, own, ["cert_file", "key_file"]);
  }
  checkServerNames(certificates, title, [...fieldPath, "tls", "certificates"], report);
  files.checkRoots(tls.client_ca_file, [...fieldPath, "tls", "client_ca_file"]);
}

function checkServerNames(
  certificates: NonNullable<ListenerTls["certificates"]>,
  title: string,
  fieldPath: FieldPath,
  report: IssueReport,
): void {
  const names = new Set<string>();
  for (const [at, entry] of certificates.entries()) {
    for (const [index, name] of entry.server_names.entries()) {
      const own = [...fieldPath, at, "server_names", index];
      if (!isServerName(name)) {
        const message = `${title} has a certificate for "${name}", which no client can request; use a host name such as example.com, or *.example.com for all names with one more label`;
        report.error("bad_value", own, message);
      }
      const canonical = canonicalHost(name);
      const message = `${title} has two certificates for "${name}"`;
      if (names.has(canonical)) report.error("duplicate_name", own, message);
      names.add(canonical);
    }
  }
}

/** True for an SNI host name or a wildcard `*.name`. */
function isServerName(text: string): boolean {
  const parsed = parseHostPort(text.startsWith("*.") ? text.slice(2) : text);
  return !("issue" in parsed) && parsed.port === undefined && parseAddress(canonicalHost(parsed.host)) === undefined;
}

/** Parses `admin.bind`, IPv6 in brackets; undefined if invalid. */
export function parseBind(text: string): { readonly address: string; readonly port: number } | undefined {
  const [, v6, name, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  const address = v6 ?? name;
  if (address === undefined || !(port <= 65_535)) return undefined;
  if (v6 !== undefined && (parseAddress(v6) === undefined || !v6.includes(":"))) return undefined;
  return { address, port };
}

function checkAdmin(document: ConfigDocument, report: IssueReport, files: TlsFiles, isDevelopment: boolean): void {
  const { admin } = document;
  if (admin === undefined) return;
  const bind = parseBind(admin.bind ?? DEFAULT_ADMIN_BIND);
  if (bind === undefined) {
    report.error("bad_value", ["admin", "bind"], "admin.bind must be an address and a port, such as 127.0.0.1:2019");
  }
  if (admin.tls !== undefined) {
    const { cert_file: cert, key_file: key, client_ca_file: roots } = admin.tls;
    files.checkPair({ cert, key }, ["admin", "tls"], ["cert_file", "key_file"]);
    files.checkRoots(roots, ["admin", "tls", "client_ca_file"]);
  } else if (!isDevelopment) {
    const message =
      "The admin API needs tls, since operators are known by their certificates; for trying out, GATEWAY_ADMIN_DEV=1 allows plain HTTP on loopback";
    report.error("required", ["admin", "tls"], message);
  } else if (bind !== undefined && !isLoopback(bind.address) && canonicalHost(bind.address) !== "localhost") {
    const message = "Without tls, GATEWAY_ADMIN_DEV=1 allows the admin API on loopback addresses only";
    report.error("bad_value", ["admin", "bind"], message);
  }
}

function checkCollisions(document: ConfigDocument, report: IssueReport): void {
  const ports = new Map<number, TakenAddresses>();
  const take = (address: string, port: number, title: string, fieldPath: FieldPath): void => {
    if (port === 0) return;
    const taken = ports.get(port) ?? new TakenAddresses();
    ports.set(port, taken);
    const other = taken.take(address, title)?.replace("The", "the");
    if (other === undefined) return;
    report.error("address_collision", fieldPath, `${title} wants ${address} port ${port}, which ${other} has`);
  };
  for (const [at, { name, address, port }] of document.listeners.entries()) {
    take(address, port, `The listener "${name}"`, ["listeners", at, "port"]);
  }
  const bind = document.admin === undefined ? undefined : parseBind(document.admin.bind ?? DEFAULT_ADMIN_BIND);
  if (bind !== undefined) take(bind.address, bind.port, "The admin API", ["admin", "bind"]);
}

/** Addresses in use on one port. A wildcard address conflicts with every other; `::` includes IPv4. */
class TakenAddresses {
  readonly #byHost = new Map<string, string>();
  readonly #firstOf = new Map<"IPv4" | "IPv6" | "all of IPv4" | "all of IPv6", string>();

  /** Registers an address; returns the owner of a conflicting one. */
  take(address: string, title: string): string | undefined {
    const host = canonicalHost(address);
    const family = address.includes(":") ? "IPv6" : "IPv4";
    const isAll = isUnspecified(address);
    const other = this.#byHost.get(host) ?? this.#around(family) ?? (isAll ? this.#inside(family) : undefined);
    if (!this.#byHost.has(host)) this.#byHost.set(host, title);
    const kinds = isAll ? ([family, `all of ${family}`] as const) : ([family] as const);
    for (const kind of kinds) {
      if (!this.#firstOf.has(kind)) this.#firstOf.set(kind, title);
    }
    return other;
  }

  #around(family: "IPv4" | "IPv6"): string | undefined {
    return this.#firstOf.get("all of IPv6") ?? (family === "IPv4" ? this.#firstOf.get("all of IPv4") : undefined);
  }

  #inside(family: "IPv4" | "IPv6"): string | undefined {
    return this.#firstOf.get("IPv4") ?? (family === "IPv6" ? this.#firstOf.get("IPv6") : undefined);
  }
}

class TlsFiles {
  readonly #report: IssueReport;
  readonly #files: FileReader;
  readonly #nowMs: number;

  constructor(report: IssueReport, files: FileReader, nowMs: number) {
    this.#report = report;
    this.#files = files;
    this.#nowMs = nowMs;
  }

  checkPair(
    files: { readonly cert: string | undefined; readonly key: string | undefined },
    fieldPath: FieldPath,
    [certField, keyField]: readonly [string, string],
  ): void {
    const { cert, key } = files;
    if (cert === undefined && key === undefined) return;
    if (cert === undefined || key === undefined) {
      const [there, lacks] = cert === undefined ? [keyField, certField] : [certField, keyField];
      this.#report.error(
        "required",
        [...fieldPath, lacks],
        `${named(fieldPath)} has ${there}, so it needs ${lacks} too`,
      );
    }
    const certificate = cert === undefined ? undefined : this.#certificates(cert, [...fieldPath, certField])?.[0];
    const privateKey = key === undefined ? undefined : this.#privateKey(key, [...fieldPath, keyField]);
    if (certificate === undefined || privateKey === undefined || certificate.checkPrivateKey(privateKey)) return;
    const message = `The key in ${key} does not belong to the certificate in ${cert}`;
    this.#report.error("bad_file", [...fieldPath, keyField], message);
  }

  /** Checks a bundle of trusted certificates. */
  checkRoots(path: string | undefined, fieldPath: FieldPath): void {
    if (path !== undefined) this.#certificates(path, fieldPath);
  }

  #certificates(path: string, fieldPath: FieldPath): X509Certificate[] | undefined {
    const bytes = this.#read(path, fieldPath);
    if (bytes === undefined) return undefined;
    const blocks =
      bytes.toString("latin1").match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
    try {
      const certificates = blocks.map((block) => new X509Certificate(block));
      const [first] = certificates;
      if (first === undefined) throw new Error("no certificate");
      if (this.#nowMs > first.validToDate.getTime()) {
        this.#report.warning(
          "bad_file",
          fieldPath,
          `The certificate in ${path} expired on ${first.validToDate.toISOString()}`,
        );
      }
      return certificates;
    } catch {
      this.#report.error("bad_file", fieldPath, `${path} has no certificate in PEM format that can be read`);
      return undefined;
    }
  }

  #privateKey(path: string, fieldPath: FieldPath): KeyObject | undefined {
    const bytes = this.#read(path, fieldPath);
    if (bytes === undefined) return undefined;
    try {
      return createPrivateKey(bytes);
    } catch {
      this.#report.error("bad_file", fieldPath, `${path} has no private key in PEM format that can be read`);
      return undefined;
    }
  }

  #read(path: string, fieldPath: FieldPath): Buffer | undefined {
    const outcome = this.#files.read(path);
    if (outcome.ok) return outcome.bytes;
    this.#report.error("bad_file", fieldPath, `${named(fieldPath)}: the file ${path} ${outcome.why}`);
    return undefined;
  }
}

/**
 * The plain-text listener of `GATEWAY_BIND` that replaces all listeners of documents, without policies or
 * authorization. Undefined if not set. Throws a readable error for an invalid address.
 */
export function onlyListenerOf(environment: Readonly<Record<string, string | undefined>>): Listener | undefined {
  const text = environment["GATEWAY_BIND"];
  if (text === undefined || text === "") return undefined;
  const bind = parseBind(text);
  if (bind === undefined) {
    throw new Error(
      `GATEWAY_BIND must be an address and a port, such as 127.0.0.1:8080 or [::1]:8080; it is "${text}"`,
    );
  }
  return { name: "bind", ...bind };
}

/** Replaces the document's listeners; routes for any listener apply to it. No change if undefined. */
export function withOnlyListener(document: ConfigDocument, listener: Listener | undefined): ConfigDocument {
  if (listener === undefined) return document;
  const routes = document.routes.map((route) => {
    if (route.match.listener === undefined) return route;
    const { listener: _left, ...match } = route.match;
    return { ...route, match };
  });
  return { ...document, listeners: [listener], routes };
}
