// Tested by ../../test/engine-flow.test.ts
import { isIP } from "node:net";
import { createSecureContext, DEFAULT_CIPHERS } from "node:tls";
import type { SecureContext } from "node:tls";
import type { CertificateAuthority } from "@headworks/tls-authority";

const DAY_MS = 86_400_000;
/** Contexts kept; at some 50 KB each a crawl over many names stays bounded. */
const MAX_CONTEXTS = 1000;

/** What Node offers, in another order: the suite that costs least on both sides first; each is secure. */
const CLIENT_CIPHERS = `TLS_AES_128_GCM_SHA256:${DEFAULT_CIPHERS.replace("TLS_AES_128_GCM_SHA256:", "")}`;

interface Entry {
  readonly context: SecureContext;
  readonly renewAtMs: number;
}

/**
 * TLS contexts with a leaf certificate for each name that clients asked for, made on first use and kept, least
 * recently used first out. A leaf is replaced a day before it expires, all of them when the authority changes.
 */
export class LeafContexts {
  readonly #authority: () => CertificateAuthority;
  readonly #entries = new Map<string, Entry>();
  #issuer: CertificateAuthority | undefined;

  constructor(authority: () => CertificateAuthority) {
    this.#authority = authority;
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
    if (authority !== this.#issuer) {
      for (const stale of this.#entries.keys()) this.#drop(stale);
      this.#issuer = authority;
    }
    const known = this.#entries.get(name);
    if (known && known.renewAtMs > Date.now()) {
      this.#entries.delete(name);
      this.#entries.set(name, known);
      return known.context;
    }
    const entry = issue(authority, name);
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

function issue(authority: CertificateAuthority, name: string): Entry {
  const leaf = authority.issueLeaf(isIP(name) === 0 ? { dns: [name] } : { ip: [name] });
  const context = createSecureContext({
    key: leaf.keyPem,
    cert: leaf.chainPem,
    minVersion: "TLSv1.2",
    // The way from client to proxy is short; hybrid post-quantum groups cost a multiple there and protect nothing more.
    ecdhCurve: "X25519:P-256:P-384",
    ciphers: CLIENT_CIPHERS,
    honorCipherOrder: true,
  });
  return { context, renewAtMs: leaf.notAfter.getTime() - DAY_MS };
}
