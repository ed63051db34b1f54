import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import { ConnectionSet, type DeadlineSweep, NOT_IN_SET, type SetMember, type Timed } from "@headworks/sockets";
import { type CertificateAuthority, oldClientTls, serverTls } from "@headworks/tls-authority";
import type { ClientFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";

interface HandshakeOptions {
  /** Paused, with the ClientHello unshifted. */
  readonly socket: Duplex;
  readonly secureContext: SecureContext;
  readonly serverName: string | undefined;
  /** The client's target, for messages. */
  readonly host: string;
  readonly facts: ClientFacts;
  readonly timeoutMs: number;
  readonly deadlines: DeadlineSweep;
  /** For ALPN, in order of preference. */
  readonly protocols: readonly string[];
  readonly done: (socket: TLSSocket, facts: ClientFacts) => void;
  readonly failed: (failure: Failure) => void;
}

/** Performs the server side of a TLS handshake; calls one of the two outcomes once. */
export function terminateTls(options: HandshakeOptions): void {
  const { socket, secureContext, serverName, host, facts, timeoutMs, deadlines, protocols, done, failed } = options;
  const secure = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols: [...protocols] });
  let isSettled = false;
  const settle = (): boolean => {
    if (isSettled) return false;
    isSettled = true;
    deadlines.delete(handshake);
    secure.off("secure", onSecure);
    secure.off("_tlsError", onError);
    secure.off("error", onError);
    secure.off("close", onClose);
    secure.off("end", onClose);
    secure.off("readable", onReadable);
    return true;
  };
  const fail = (failure: Failure): void => {
    if (!settle()) return;
    secure.on("error", () => undefined);
    secure.destroy();
    socket.destroy();
    failed(failure);
  };
  const onSecure = (): void => {
    if (!settle()) return;
    const tls = { version: secure.getProtocol() ?? "", cipher: secure.getCipher().standardName };
    done(secure, { ...facts, sni: serverName, tls });
  };
  const onError = (error: NodeJS.ErrnoException): void => fail(clientTlsFailure(error, host));
  const onClose = (): void =>
    fail({
      stage: "tls",
      side: "client",
      code: "CLIENT_CERTIFICATE_REFUSED",
      message: `The client closed the connection to ${host} during TLS; it probably does not trust the certificate of this proxy`,
    });
  // There is no reader yet, and a stream emits "end" only while it is read.
  const onReadable = (): void => void secure.read(0);
  const handshake: Timed = {
    setIndex: NOT_IN_SET,
    deadlineMs: performance.now() + timeoutMs,
    onDeadline: () => {
      const message = `The client did not complete TLS within ${timeoutMs} ms`;
      fail({ stage: "tls", side: "client", code: "CLIENT_TIMEOUT", message });
    },
  };
  deadlines.add(handshake);
  secure.on("secure", onSecure);
  secure.on("_tlsError", onError);
  secure.on("error", onError);
  secure.on("close", onClose);
  secure.on("end", onClose);
  secure.on("readable", onReadable);
}

/** Alerts of clients that reject the certificate (RFC 8446, 6.2). */
const REFUSALS = [
  "UNKNOWN_CA",
  "BAD_CERTIFICATE",
  "CERTIFICATE_UNKNOWN",
  "CERTIFICATE_EXPIRED",
  "CERTIFICATE_REVOKED",
  "UNSUPPORTED_CERTIFICATE",
  "ACCESS_DENIED",
];

function clientTlsFailure(error: NodeJS.ErrnoException & { reason?: string }, host: string): Failure {
  const code = (error.code ?? "").toUpperCase();
  const alert = REFUSALS.find((name) => code.endsWith(name));
  if (alert !== undefined) {
    const message = `The client refused the certificate for ${host} (alert ${alert.toLowerCase().replaceAll("_", " ")}): it does not trust the CA of this proxy`;
    return { stage: "tls", side: "client", code: "CLIENT_CERTIFICATE_REFUSED", message, cause: error };
  }
  if (code === "ERR_SSL_NO_APPLICATION_PROTOCOL") {
    const message = `The client speaks none of the protocols it was offered for ${host}; one that insists on HTTP/2 needs enable_h2_downstream`;
    return { stage: "tls", side: "client", code: "CLIENT_TLS", message, cause: error };
  }
  if (code === "ERR_SSL_NO_SHARED_CIPHER" || code === "ERR_SSL_UNSUPPORTED_PROTOCOL") {
    const message = `The client offers no permitted TLS version and cipher suite for ${host}; an outdated client needs legacy_client_tls`;
    return { stage: "tls", side: "client", code: "CLIENT_TLS", message, cause: error };
  }
  if (code === "ECONNRESET" || code === "EPIPE") {
    const message = `The client reset the connection to ${host} during TLS; it probably does not trust the certificate of this proxy`;
    return { stage: "tls", side: "client", code: "CLIENT_CERTIFICATE_REFUSED", message, cause: error };
  }
  const message = `TLS with the client failed for ${host} (${error.reason ?? error.code ?? error.message})`;
  return { stage: "tls", side: "client", code: "CLIENT_TLS", message, cause: error };
}

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

  /** The context for a host name or address. Use it at once: a later call may close it. */
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
