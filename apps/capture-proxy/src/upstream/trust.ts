// Tested by ../../test/engine-flow.test.ts
import { createSecureContext, getCACertificates } from "node:tls";
import type { SecureContext, TLSSocket } from "node:tls";
import type { HostMatcher } from "@headworks/host-patterns";
import { compileHostPatterns } from "@headworks/host-patterns";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";

interface Peer {
  readonly host: string;
  readonly port: number;
  readonly serverName: string;
}

/** What makes an origin's certificate acceptable. */
export interface TrustSettings {
  /** PEM text of roots beside the system's and the bundled ones; read once. */
  readonly extraRootsPem: string | null;
  /** Verify nothing. */
  readonly insecure: boolean;
  /** Hosts that are not verified. */
  readonly insecureHosts: readonly string[];
}

const MAX_SESSIONS = 2000;

/** What is known of a certificate that was verified. */
type CertificateFacts = Pick<UpstreamTlsFacts, "subject" | "issuer" | "validToMs">;

/** A resumed connection shows no certificate: what the first one showed is kept with the session. */
interface KnownSession {
  readonly session: Buffer;
  readonly certificate: CertificateFacts;
}

/**
 * Decides how origins prove who they are: against the system's and the bundled roots, unless verification is
 * switched off for all or for some hosts. Keeps TLS sessions of verified connections, so that the next connection
 * to the same peer is cheaper; a session never crosses peers, names or a change of these settings.
 */
export class UpstreamTrust {
  readonly #sessions = new Map<string, KnownSession>();
  #context: SecureContext | undefined;
  readonly #extraRootsPem: string | null;
  #insecure: boolean;
  #insecureHosts: HostMatcher;

  constructor(settings: TrustSettings) {
    this.#extraRootsPem = settings.extraRootsPem;
    this.#insecure = settings.insecure;
    this.#insecureHosts = compileHostPatterns(settings.insecureHosts, "ignored");
  }

  /** Takes effect for connections opened from now on. */
  update(settings: TrustSettings): void {
    this.#insecure = settings.insecure;
    this.#insecureHosts = compileHostPatterns(settings.insecureHosts, "ignored");
    this.#sessions.clear();
  }

  /** Reads the roots; done once, ahead of the first connection, because it takes some milliseconds. */
  prepare(): void {
    this.#context ??= this.#createContext();
  }

  verifies(host: string): boolean {
    return !this.#insecure && !this.#insecureHosts.matches(host);
  }

  /** Options for `tls.connect`. */
  options(peer: Peer): { secureContext: SecureContext; rejectUnauthorized: boolean; session?: Buffer } {
    this.prepare();
    const verifies = this.verifies(peer.serverName);
    const known = verifies ? this.#sessions.get(sessionKey(peer)) : undefined;
    // A session proves the name only as long as the certificate did that it was made with.
    const mayResume = known !== undefined && (known.certificate.validToMs ?? 0) > Date.now();
    return {
      secureContext: this.#context as SecureContext,
      rejectUnauthorized: verifies,
      ...(mayResume ? { session: known.session } : {}),
    };
  }

  /** What the entry says of a connection, and the start of remembering its sessions. */
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
    };
  }

  #remember(key: string, known: KnownSession): void {
    this.#sessions.delete(key);
    this.#sessions.set(key, known);
    if (this.#sessions.size <= MAX_SESSIONS) return;
    const oldest = this.#sessions.keys().next().value;
    if (oldest !== undefined) this.#sessions.delete(oldest);
  }

  #createContext(): SecureContext {
    const extra = this.#extraRootsPem === null ? [] : [this.#extraRootsPem];
    const roots = new Set([...getCACertificates("bundled"), ...getCACertificates("system"), ...extra]);
    return createSecureContext({ ca: [...roots], minVersion: "TLSv1.2" });
  }
}

function sessionKey(peer: Peer): string {
  return `${peer.host}|${peer.port}|${peer.serverName}`;
}

/** X509Certificate shows distinguished names with a line per part. */
function oneLine(name: string | undefined): string | undefined {
  return name?.replaceAll("\n", ", ");
}
