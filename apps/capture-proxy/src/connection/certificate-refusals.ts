import { NOT_IN_SET, ConnectionSet, type DeadlineSweep, type SetMember } from "@headworks/sockets";
import type { CertificateAuthority } from "@headworks/tls-authority";

/** How soon after TLS a client that refuses the certificate hangs up. */
const REFUSAL_MS = 1000;
/** More than are in use within a second. */
const MAX_USERS = 1000;

/** What is inside TLS. */
interface Inner {
  /** Whether the client ever said anything on this connection. */
  readonly hasReceived: boolean;
}

/** A client's end of TLS. */
interface SecureEnd {
  once(event: "end" | "error" | "close", listener: () => void): unknown;
}

interface Member extends SetMember {
  readonly inner: Inner;
}

/** Connections over which one client has done TLS with one host. */
interface User {
  readonly open: ConnectionSet<Member>;
  /** When the last one that it had used was closed. */
  usedUntilMs: number;
}

/**
 * Finds the clients that refused a certificate after TLS. Some complete TLS before they look at it, then hang up without a
 * word, or as politely as after a request: a connection that is closed at once, unused, is most likely such a refusal. It
 * is none where the client used another connection to the same host at that time: browsers open some that they then have no
 * need of. Other hosts say nothing: whoever pins the certificates of one trusts the CA for others.
 */
export class CertificateRefusals {
  readonly #authority: () => CertificateAuthority;
  readonly #deadlines: Pick<DeadlineSweep, "add" | "delete">;
  readonly #nowMs: () => number;
  readonly #users = new Map<string, User>();
  #issuer: CertificateAuthority | undefined;

  /**
   * @param authority  the one that certificates are from; who trusted the one before may refuse it
   * @param nowMs  a clock that only goes forward
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
   * Watches a connection whose TLS is done.
   * @param name  what tells this client and this host from others
   * @param refused  called once if the client refused the certificate, up to a second after it hung up
   */
  watch(name: string, secure: SecureEnd, inner: Inner, refused: () => void): void {
    const user = this.#userOf(name);
    const member = { setIndex: NOT_IN_SET, inner };
    user.open.add(member);
    const sinceMs = this.#nowMs();
    let isFinished = false;
    // It is a reset when the client had not read our session tickets yet.
    const hungUp = (): void => {
      if (isFinished) return;
      isFinished = true;
      if (inner.hasReceived || this.#nowMs() - sinceMs > REFUSAL_MS || hasShownTrust(user, sinceMs)) return;
      if (user.open.size === 1) return refused();
      // The client may be about to use another one.
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

/** Whether a connection that is open, or was at that moment, has been used. */
function hasShownTrust(user: User, sinceMs: number): boolean {
  if (user.usedUntilMs >= sinceMs) return true;
  let isUsed = false;
  user.open.forEach(({ inner }) => {
    isUsed ||= inner.hasReceived;
  });
  return isUsed;
}
