import { isIP } from "node:net";
import { createSecureContext } from "node:tls";
import type { SecureContext } from "node:tls";
import { oldClientTls, serverTls, type CertificateAuthority } from "@headworks/tls-authority";

const DAY_MS = 86_400_000;
/** At about 50 KB each, this bounds a crawl over many names. */
const MAX_CONTEXTS = 1000;

interface Entry {
  readonly context: SecureContext;
  readonly renewAtMs: number;
}

/**
 * TLS contexts with a leaf certificate per name, created on demand in an LRU cache. A leaf is replaced a day before it
 * expires; all are replaced when the authority or `acceptsOldClients` changes, which enables TLS 1.0, TLS 1.1 and CBC
 * suites.
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

  get size(): number {
    return this.#entries.size;
  }

  /**
   * The context for a host name or address. Use it at once: a later call may close it, which affects only new
   * sessions.
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
    // The garbage collector sees only a small object and not its 50 KB of native memory, so thousands would pile up.
    (entry.context.context as { close?: () => void }).close?.();
  }
}

function issue(authority: CertificateAuthority, name: string, isForOldClients: boolean): Entry {
  const leaf = authority.issueLeaf(isIP(name) === 0 ? { dns: [name] } : { ip: [name] });
  const context = createSecureContext({
    key: leaf.keyPem,
    cert: leaf.chainPem,
    ...(isForOldClients ? oldClientTls() : { ...serverTls(), minVersion: "TLSv1.2" }),
    // Client and proxy are close; hybrid post-quantum groups cost a multiple and add no protection there.
    ecdhCurve: "X25519:P-256:P-384",
  });
  return { context, renewAtMs: leaf.notAfter.getTime() - DAY_MS };
}
