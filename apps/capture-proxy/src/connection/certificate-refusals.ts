import { NOT_IN_SET, ConnectionSet, type DeadlineSweep, type SetMember } from "@headworks/sockets";
import type { CertificateAuthority } from "@headworks/tls-authority";

/** A client that rejects the certificate disconnects within this time after the handshake. */
const REFUSAL_MS = 1000;
const MAX_USERS = 1000;

/** The protocol inside TLS. */
interface Inner {
  readonly hasReceived: boolean;
}

interface SecureEnd {
  once(event: "end" | "error" | "close", listener: () => void): unknown;
}

interface Member extends SetMember {
  readonly inner: Inner;
}

/** Intercepted connections of one client to one host. */
interface User {
  readonly open: ConnectionSet<Member>;
  /** When the last used connection was closed. */
  usedUntilMs: number;
}

/**
 * Detects clients that reject the certificate after the TLS handshake. Some complete the handshake before they check
 * it and then disconnect without an alert, so a connection closed at once and unused is most likely a rejection. It is
 * none if the client used another connection to the same host at that time, since browsers open spare connections.
 * Other hosts prove nothing: a client that pins one host's certificate trusts the CA for others.
 */
export class CertificateRefusals {
  readonly #authority: () => CertificateAuthority;
  readonly #deadlines: Pick<DeadlineSweep, "add" | "delete">;
  readonly #nowMs: () => number;
  readonly #users = new Map<string, User>();
  #issuer: CertificateAuthority | undefined;

  /**
   * @param authority  the current CA; a client that trusted an earlier one may reject it
   * @param nowMs  monotonic clock
   */
  constructor(
    authority: () => CertificateAuthority,
    deadlines: Pick<DeadlineSweep, "add" | "delete">,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#authority = authority;
    this.#deadlines = deadlines;
    this.#nowMs = nowMs;
  }

  /**
   * Watches a connection after its handshake.
   * @param name  identifies client and host
   * @param refused  called at most once, up to a second after the client disconnected
   */
  watch(name: string, secure: SecureEnd, inner: Inner, refused: () => void): void {
    const user = this.#userOf(name);
    const member = { setIndex: NOT_IN_SET, inner };
    user.open.add(member);
    const sinceMs = this.#nowMs();
    let isFinished = false;
    // An "error" is a reset by a client that had not read our session tickets yet.
    const hungUp = (): void => {
      if (isFinished) return;
      isFinished = true;
      if (inner.hasReceived || this.#nowMs() - sinceMs > REFUSAL_MS || hasShownTrust(user, sinceMs)) return;
      if (user.open.size === 1) return refused();
      // The client may be about to use another connection.
      this.#later(() => {
        if (!hasShownTrust(user, sinceMs)) refused();
      });
    };
    secure.once("end", hungUp);
    secure.once("error", hungUp);
    secure.once("close", () => {
      user.open.delete(member);
      if (inner.hasReceived) user.usedUntilMs = this.#nowMs();
    });
  }

  #userOf(name: string): User {
    const authority = this.#authority();
    if (authority !== this.#issuer) this.#users.clear();
    this.#issuer = authority;
    let user = this.#users.get(name);
    if (user === undefined) {
      user = { open: new ConnectionSet(), usedUntilMs: Number.NEGATIVE_INFINITY };
      if (this.#users.size === MAX_USERS) this.#users.delete(this.#users.keys().next().value ?? "");
      this.#users.set(name, user);
    }
    return user;
  }

  #later(decide: () => void): void {
    const timed = {
      setIndex: NOT_IN_SET,
      deadlineMs: this.#nowMs() + REFUSAL_MS,
      onDeadline: () => {
        this.#deadlines.delete(timed);
        decide();
      },
    };
    this.#deadlines.add(timed);
  }
}

/** Whether a connection open at that moment or later has been used. */
function hasShownTrust(user: User, sinceMs: number): boolean {
  if (user.usedUntilMs >= sinceMs) return true;
  let isUsed = false;
  user.open.forEach(({ inner }) => {
    isUsed ||= inner.hasReceived;
  });
  return isUsed;
}
