import { hkdfSync, randomBytes } from "node:crypto";

const SECRET_BYTES = 32;
/** What node takes: a name, a key for the seal, a key for the content. */
const KEYS_BYTES = 48;
/** Whoever gets hold of a key reads what was said under tickets of this time, and of no other. */
const ROTATE_MS = 12 * 3_600_000;

/**
 * The secret behind the tickets that let clients resume their TLS sessions (RFC 8446, 4.6.1; RFC 5077). One for all
 * processes of a gateway, so that any of them resumes what another began; made anew now and then, and never stored.
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

  /** Keys for `tls.Server`. Sessions of one context are nothing to another. */
  keysFor(context: string): Buffer {
    return Buffer.from(hkdfSync("sha256", this.#secret, "", `tickets of ${context}`, KEYS_BYTES));
  }

  /** Calls `changed` after each change; gives a way to end that. */
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

  /** Rotates from time to time, until {@link stop}. */
  start(everyMs = ROTATE_MS): void {
    this.#rotation = setInterval(() => this.rotate(), everyMs);
    this.#rotation.unref();
  }

  stop(): void {
    clearInterval(this.#rotation);
  }
}
