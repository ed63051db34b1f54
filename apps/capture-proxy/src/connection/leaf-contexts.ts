import { isIP } from "node:net";
import { createSecureContext } from "node:tls";
import type { SecureContext } from "node:tls";
import { oldClientTls, serverTls, type CertificateAuthority } from "@headworks/tls-authority";

const DAY_MS = 86_400_000;
/** Contexts kept; at some 50 KB each a crawl over many names stays bounded. */
const MAX_CONTEXTS = 1000;

interface Entry {
  readonly context: SecureContext;
  readonly renewAtMs: number;
}

/**
 * TLS contexts with a leaf certificate for each name that clients asked for, made on first use and kept, least
 * recently used first out. A leaf is replaced a day before it expires, all of them when the authority or
 * `acceptsOldClients` changes, which opens TLS 1.0, TLS 1.1 and CBC suites.
 */
export class LeafContexts {
  readonly #authority: () => CertificateAuthority;
  readonly #acceptsOldClients: () => boolean;
  readonly #entries = new Map<string, Entry>();
  #issuer: CertificateAuthority | undefined;
  #isForOldClients = false;

  constructor(authority: () => CertificateAuthority, acceptsOldClients: () => boolean) {
    this.#authority = authority;
    this.#acceptsOldClients = acceptsOldClients;
  }

  /** Number of contexts held. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * The context to answer a client with that wants to talk to `name` (a host name or an address). To be used at once:
   * a later call may close it, which concerns only sessions that are yet to begin.
   */
  get(name: string): SecureContext {
    const authority = this.#authority();
    const acceptsOldClients = this.#acceptsOldClients();
    if (authority !== this.#issuer || acceptsOldClients !== this.#isForOldClients) {
      for (const stale of this.#entries.keys()) this.#drop(stale);
      this.#issuer = authority;
      this.#isForOldClients = acceptsOldClients;
    }
    const known = this.#entries.get(name);
    if (known && known.renewAtMs > Date.now()) {
      this.#entries.delete(name);
      this.#entries.set(name, known);
      return known.context;
    }
    const entry = issue(authority, name, acceptsOldClients);
    this.#drop(name);
    this.#entries.set(name, entry);
    if (this.#entries.size > MAX_CONTEXTS) {
      const oldest = this.#entries.keys().next().value;
      if (oldest !== undefined) this.#drop(oldest);
    }
    return entry.context;
  }

  #drop(name: string): void {
    const entry = this.#entries.get(name);
    if (!entry) return;
    this.#entries.delete(name);
    // The collector sees a small object and lets thousands pile up, each with some 50 KB that it does not see.
    (entry.context.context as { close?: () => void }).close?.();
  }
}

function issue(authority: CertificateAuthority, name: string, isForOldClients: boolean): Entry {
  const leaf = authority.issueLeaf(isIP(name) === 0 ? { dns: [name] } : { ip: [name] });
  const context = createSecureContext({
    key: leaf.keyPem,
    cert: leaf.chainPem,
    ...(isForOldClients ? oldClientTls() : { ...serverTls(), minVersion: "TLSv1.2" }),
    // The way from client to proxy is short; hybrid post-quantum groups cost a multiple there and protect nothing more.
    ecdhCurve: "X25519:P-256:P-384",
  });
  return { context, renewAtMs: leaf.notAfter.getTime() - DAY_MS };
}
