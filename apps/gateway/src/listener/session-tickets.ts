import { hkdfSync, randomBytes } from "node:crypto";

const SECRET_BYTES = 32;
/** Size required by node: a name, an encryption key, a signing key. */
const KEYS_BYTES = 48;
/** Limits the traffic that a stolen key can decrypt. */
const ROTATE_MS = 12 * 3_600_000;

/**
 * The secret behind TLS session tickets (RFC 8446, 4.6.1; RFC 5077). All processes of a gateway share it, so that any
 * of them resumes a session of another; it is rotated and never stored.
 */
export class SessionTickets {
  #secret: Buffer;
  readonly #subscribers = new Set<() => void>();
  #rotation: NodeJS.Timeout | undefined;

  constructor(secret: Uint8Array = randomBytes(SECRET_BYTES)) {
    this.#secret = Buffer.from(secret);
  }

  get secret(): Buffer {
    return this.#secret;
  }

  /** Keys for `tls.Server`; sessions cannot be resumed in another context. */
  keysFor(context: string): Buffer {
    return Buffer.from(hkdfSync("sha256", this.#secret, "", `tickets of ${context}`, KEYS_BYTES));
  }

  /** Calls `changed` after each change; returns a function that unsubscribes. */
  follow(changed: () => void): () => void {
    this.#subscribers.add(changed);
    return () => {
      this.#subscribers.delete(changed);
    };
  }

  adopt(secret: Uint8Array): void {
    this.#secret = Buffer.from(secret);
    for (const changed of this.#subscribers) changed();
  }

  rotate(): void {
    this.adopt(randomBytes(SECRET_BYTES));
  }

  /** Rotates periodically until {@link stop}. */
  start(everyMs = ROTATE_MS): void {
    this.#rotation = setInterval(() => this.rotate(), everyMs);
    this.#rotation.unref();
  }

  stop(): void {
    clearInterval(this.#rotation);
  }
}
