import { constants } from "node:crypto";
import {
  createSecureContext,
  getCACertificates,
  type SecureContext,
  type SecureContextOptions,
  type SecureVersion,
  type TLSSocket,
} from "node:tls";
import { compileHostPatterns, type HostMatcher } from "@headworks/host-patterns";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";

interface Peer {
  readonly host: string;
  readonly port: number;
  readonly serverName: string;
}

/** A value for hosts that match a pattern. */
interface HostValue<Value> {
  readonly matcher: HostMatcher;
  readonly value: Value;
}

/** How origins are verified, and how Weir authenticates to them. */
export interface TrustSettings {
  /** PEM text of roots in addition to the system's and the bundled ones; read once. */
  readonly extraRootsPem: string | null;
  /** Disables verification. */
  readonly insecure: boolean;
  /** Host patterns excluded from verification. */
  readonly insecureHosts: readonly string[];
  /** Client certificates by host pattern; the first match counts. */
  readonly clientCertificates: readonly { readonly host: string; readonly identity: SecureContextOptions }[];
  /** Minimum TLS version by host pattern, TLS 1.2 by default; the first match counts. */
  readonly minVersions: readonly { readonly host: string; readonly version: SecureVersion }[];
}

const DEFAULT_MIN_VERSION = "TLSv1.2";
const MAX_SESSIONS = 2000;

/** Facts about a verified certificate. */
type CertificateFacts = Pick<UpstreamTlsFacts, "subject" | "issuer" | "validToMs" | "clientCertificate">;

/** A resumed connection shows and requests no certificate, so the facts of the first one are kept with the session. */
interface KnownSession {
  readonly session: Buffer;
  readonly certificate: CertificateFacts;
}

/**
 * Decides how origins are verified (against the system's and the bundled roots, unless disabled for all or some hosts)
 * and which client certificates and TLS versions are used. Caches TLS sessions of verified connections; a session is
 * never reused across peers, names or a change of these settings.
 */
export class UpstreamTrust {
  readonly #sessions = new Map<string, KnownSession>();
  /** By client certificate, then by minimum version. */
  readonly #contexts = new Map<SecureContextOptions | undefined, Map<SecureVersion, SecureContext>>();
  #roots: readonly string[] | undefined;
  readonly #extraRootsPem: string | null;
  #insecure: boolean;
  #insecureHosts: HostMatcher;
  #clientCertificates: readonly HostValue<SecureContextOptions>[];
  #minVersions: readonly HostValue<SecureVersion>[];

  constructor(settings: TrustSettings) {
    this.#extraRootsPem = settings.extraRootsPem;
    this.#insecure = settings.insecure;
    this.#insecureHosts = compileHostPatterns(settings.insecureHosts, "ignored");
    this.#clientCertificates = clientCertificates(settings);
    this.#minVersions = minVersions(settings);
  }

  /** Applies to connections opened from now on. */
  update(settings: TrustSettings): void {
    this.#insecure = settings.insecure;
    this.#insecureHosts = compileHostPatterns(settings.insecureHosts, "ignored");
    this.#clientCertificates = clientCertificates(settings);
    this.#minVersions = minVersions(settings);
    this.#sessions.clear();
    for (const identity of this.#contexts.keys()) if (identity !== undefined) this.#contexts.delete(identity);
  }

  /** Loads the roots once before the first connection, since that takes some milliseconds. */
  prepare(): void {
    this.#context(undefined, DEFAULT_MIN_VERSION);
  }

  verifies(host: string): boolean {
    return !this.#insecure && !this.#insecureHosts.matches(host);
  }

  /** Options for `tls.connect`. */
  options(peer: Peer): { secureContext: SecureContext; rejectUnauthorized: boolean; session?: Buffer } {
    const { serverName } = peer;
    const verifies = this.verifies(serverName);
    const known = verifies ? this.#sessions.get(sessionKey(peer)) : undefined;
    // A session proves the name only while the original certificate is valid.
    const mayResume = known !== undefined && (known.certificate.validToMs ?? 0) > Date.now();
    return {
      secureContext: this.#context(
        valueOf(this.#clientCertificates, serverName),
        valueOf(this.#minVersions, serverName) ?? DEFAULT_MIN_VERSION,
      ),
      rejectUnauthorized: verifies,
      ...(mayResume ? { session: known.session } : {}),
    };
  }

  /** The TLS facts of a connection; also starts caching its sessions. */
  facts(socket: TLSSocket, peer: Peer): UpstreamTlsFacts {
    const verified = this.verifies(peer.serverName) && socket.authorized;
    const certificate = this.#certificateFacts(socket, peer);
    if (verified) socket.on("session", (session) => this.#remember(sessionKey(peer), { session, certificate }));
    return { version: socket.getProtocol() ?? "", cipher: socket.getCipher().standardName, verified, ...certificate };
  }

  #certificateFacts(socket: TLSSocket, peer: Peer): CertificateFacts {
    const certificate = socket.getPeerX509Certificate();
    const known = certificate === undefined ? this.#sessions.get(sessionKey(peer))?.certificate : undefined;
    if (known) return known;
    return {
      subject: oneLine(certificate?.subject),
      issuer: oneLine(certificate?.issuer),
      validToMs: certificate ? Date.parse(certificate.validTo) : undefined,
      clientCertificate: clientCertificateResponse(socket),
    };
  }

  #remember(key: string, known: KnownSession): void {
    this.#sessions.delete(key);
    this.#sessions.set(key, known);
    if (this.#sessions.size <= MAX_SESSIONS) return;
    const oldest = this.#sessions.keys().next().value;
    if (oldest !== undefined) this.#sessions.delete(oldest);
  }

  #context(identity: SecureContextOptions | undefined, minVersion: SecureVersion): SecureContext {
    let byVersion = this.#contexts.get(identity);
    if (byVersion === undefined) {
      byVersion = new Map<SecureVersion, SecureContext>();
      this.#contexts.set(identity, byVersion);
    }
    let context = byVersion.get(minVersion);
    if (context === undefined) {
      this.#roots ??= this.#readRoots();
      context = createSecureContext({ ca: [...this.#roots], ...identity, ...versionOptions(minVersion) });
      byVersion.set(minVersion, context);
    }
    return context;
  }

  #readRoots(): readonly string[] {
    const extra = this.#extraRootsPem === null ? [] : [this.#extraRootsPem];
    return [...new Set([...getCACertificates("bundled"), ...getCACertificates("system"), ...extra])];
  }
}

/**
 * The client certificate sent to an upstream; undefined if it requested none. Node exposes the upstream's signature
 * algorithms only if it requested one (RFC 8446, 4.3.2; RFC 5246, 7.4.4).
 */
export function clientCertificateResponse(socket: TLSSocket): UpstreamTlsFacts["clientCertificate"] {
  // Null on a closed socket.
  const algorithms = socket.getSharedSigalgs() as string[] | null;
  if (algorithms === null || algorithms.length === 0) return undefined;
  const own = socket.getCertificate();
  return own === null || Object.keys(own).length === 0 ? "none" : "sent";
}

function clientCertificates(settings: TrustSettings): HostValue<SecureContextOptions>[] {
  return settings.clientCertificates.map(({ host, identity }) => hostValue(host, identity));
}

function minVersions(settings: TrustSettings): HostValue<SecureVersion>[] {
  return settings.minVersions.map(({ host, version }) => hostValue(host, version));
}

function hostValue<Value>(host: string, value: Value): HostValue<Value> {
  return { matcher: compileHostPatterns([host], "ignored"), value };
}

function valueOf<Value>(values: readonly HostValue<Value>[], host: string): Value | undefined {
  return values.find(({ matcher }) => matcher.matches(host))?.value;
}

/** Servers older than TLS 1.2 sign with SHA-1, have small keys, and do not support secure renegotiation (RFC 5746). */
const OLD_SERVERS: SecureContextOptions = {
  ciphers: "DEFAULT:@SECLEVEL=0",
  secureOptions: constants.SSL_OP_LEGACY_SERVER_CONNECT,
};

function versionOptions(minVersion: SecureVersion): SecureContextOptions {
  const isOld = minVersion === "TLSv1" || minVersion === "TLSv1.1";
  return isOld ? { ...OLD_SERVERS, minVersion } : { minVersion };
}

function sessionKey(peer: Peer): string {
  return `${peer.host}|${peer.port}|${peer.serverName}`;
}

/** X509Certificate formats distinguished names with one attribute per line. */
function oneLine(name: string | undefined): string | undefined {
  return name?.replaceAll("\n", ", ");
}
