import { createHash, createPrivateKey, hkdfSync, randomBytes, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import {
  createSecureContext,
  createServer,
  type SecureContext,
  type SecureContextOptions,
  type Server,
  type TLSSocket,
} from "node:tls";
import type { Logger } from "pino";
import type { ListenerTls } from "@headworks/gateway-contract";
import { canonicalHost } from "@headworks/host-patterns";
import { serverTls } from "@headworks/tls-authority";

/** Watches a file; one change may be reported several times. */
export type WatchFile = (path: string, changed: () => void) => { close(): Promise<void> };

interface TlsParts {
  readonly listener: string;
  readonly tls: ListenerTls;
  readonly offersHttp2: boolean;
  readonly handshakeMs: number;
  readonly log: Logger;
  readonly watch: WatchFile;
  readonly tickets: SessionTickets;
}

/** Delay before a reload: a certificate and its key are written as two files that do not match in between. */
const SETTLE_MS = 250;
const LOG_EVERY_MS = 1000;

interface Handshake {
  secured: ((socket: TLSSocket) => void) | undefined;
}

/** Starts TLS on accepted sockets, with certificates that follow their files. */
export class TlsAcceptor {
  /** Failed handshakes since the start. */
  handshakeFailures = 0;
  readonly #parts: TlsParts;
  readonly #server: Server;
  /** By the client's address and port; entries are removed when the handshake ends. */
  readonly #waiting = new Map<string, Handshake>();
  readonly #watches: readonly { close(): Promise<void> }[];
  readonly #stopFollowing: () => void;
  #material: TlsMaterial;
  #settle: NodeJS.Timeout | undefined;
  #reading: Promise<void> = Promise.resolve();
  #loggedAtMs = Number.NEGATIVE_INFINITY;

  private constructor(parts: TlsParts, material: TlsMaterial) {
    this.#parts = parts;
    this.#material = material;
    this.#server = createServer({
      ...material.fallback,
      ALPNProtocols: [...(parts.offersHttp2 ? ["h2"] : []), "http/1.1", "http/1.0"],
      handshakeTimeout: parts.handshakeMs,
      // Requested and verified but not required: routes decide about clients without a certificate.
      requestCert: parts.tls.client_ca_file !== undefined,
      rejectUnauthorized: false,
      allowHalfOpen: true,
      pauseOnConnect: true,
      SNICallback: (name, done) => done(null, this.#material.contextFor(name)),
    });
    this.#server.on("secureConnection", this.#onSecure);
    this.#server.on("tlsClientError", (error, socket) => this.#failed(socket, error.message));
    this.#setTicketKeys();
    this.#stopFollowing = parts.tickets.follow(() => this.#setTicketKeys());
    this.#watches = tlsFiles(parts.tls).map((path) => parts.watch(path, () => this.#noticed()));
  }

  /** Rejects if the certificates cannot be used. */
  static async create(parts: TlsParts): Promise<TlsAcceptor> {
    const { material } = await readTlsMaterial(parts.tls, sessionContext(parts.listener));
    return new TlsAcceptor(parts, material);
  }

  /**
   * Starts TLS on a paused socket; bytes read from it must be unshifted. `secured` is called once after a successful
   * handshake, and never for a socket that closes before.
   */
  accept(socket: Socket, secured: (socket: TLSSocket) => void): void {
    const key = clientKey(socket);
    const handshake: Handshake = { secured };
    this.#waiting.set(key, handshake);
    socket.once("close", () => {
      handshake.secured = undefined;
      if (this.#waiting.get(key) === handshake) this.#waiting.delete(key);
    });
    this.#server.emit("connection", socket);
  }

  /** Reads the files again; an unusable certificate leaves the previous one in place. */
  async reload(): Promise<void> {
    this.#reading = this.#reading.then(async () => await this.#readAgain());
    await this.#reading;
  }

  /** Stops watching the files; connections stay open. */
  async close(): Promise<void> {
    clearTimeout(this.#settle);
    this.#stopFollowing();
    await Promise.all(this.#watches.map(async (watch) => await watch.close()));
  }

  #noticed(): void {
    clearTimeout(this.#settle);
    this.#settle = setTimeout(() => void this.reload(), SETTLE_MS);
    this.#settle.unref();
  }

  async #readAgain(): Promise<void> {
    const { tls, listener, log } = this.#parts;
    const refuse = (error: unknown): void => {
      log.error(
        { err: error, listener, code: "tls_reload_failed" },
        "A changed certificate cannot be used; the previous one stays",
      );
    };
    try {
      const { material, problems } = await readTlsMaterial(tls, sessionContext(listener), this.#material);
      for (const problem of problems) refuse(problem);
      if (material.fingerprint === this.#material.fingerprint) return;
      this.#server.setSecureContext(material.fallback);
      this.#material = material;
      this.#setTicketKeys();
      log.info({ listener, code: "tls_reloaded" }, "Certificates reloaded for new connections");
    } catch (error) {
      refuse(error);
    }
  }

  /** All names use the keys of the fallback: sessions are resumed before the name is known. */
  #setTicketKeys(): void {
    const { listener, tickets } = this.#parts;
    this.#server.setTicketKeys(tickets.keysFor(`${listener} ${this.#material.trust}`));
  }

  readonly #onSecure = (socket: TLSSocket): void => {
    const key = clientKey(socket);
    const handshake = this.#waiting.get(key);
    this.#waiting.delete(key);
    const secured = handshake?.secured;
    if (handshake !== undefined) handshake.secured = undefined;
    const hasCertificate = socket.getPeerX509Certificate() !== undefined;
    if (secured === undefined || (hasCertificate && !socket.authorized)) {
      const why: unknown = socket.authorizationError;
      this.#failed(socket, `the client's certificate is not trusted: ${String(why)}`);
      return;
    }
    secured(socket);
  };

  #failed(socket: TLSSocket, why: string): void {
    this.handshakeFailures += 1;
    socket.destroy();
    const nowMs = performance.now();
    if (nowMs - this.#loggedAtMs < LOG_EVERY_MS) return;
    this.#loggedAtMs = nowMs;
    const { listener, log } = this.#parts;
    log.debug(
      { listener, failures: this.handshakeFailures, why, code: "tls_handshake_failed" },
      "A TLS handshake failed",
    );
  }
}

/** Address and port of the client, unique among the open connections of a listener. */
function clientKey({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** OpenSSL allows at most 32 bytes. */
function sessionContext(listener: string): string {
  return createHash("sha256").update(listener).digest("hex").slice(0, 32);
}

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

/** Certificates as read from their files at one moment. */
interface TlsMaterial {
  /** For names without a certificate, and for clients without SNI. */
  readonly fallback: SecureContextOptions;
  /** Exact name first, then `*.` and all but the first label. */
  contextFor(name: string): SecureContext | undefined;
  /** Equal for equal client authorities: a session must not outlive the trust it was created under. */
  readonly trust: string;
  /** Equal for equal contents of all files. */
  readonly fingerprint: string;
  readonly pairs: readonly UsedPair[];
}

/** The last usable state of a certificate and its key. */
interface UsedPair {
  /** Key: their paths. */
  readonly paths: string;
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly names: readonly string[];
  readonly context: SecureContext;
}

/** All certificate and key files of a listener. */
function tlsFiles(tls: ListenerTls): string[] {
  const pairs = [tls, ...(tls.certificates ?? [])];
  const files = pairs.flatMap(({ cert_file, key_file }) => [cert_file, key_file]);
  return [...new Set([...files, tls.client_ca_file].filter((path) => path !== undefined))];
}

/** The new material, and the files that could not be used. */
interface TlsReading {
  readonly material: TlsMaterial;
  readonly problems: readonly Error[];
}

/**
 * Reads all certificates and creates their contexts, which is too expensive per client. A certificate that cannot be
 * used is taken from `before`, so that it does not block the renewal of others; without one there, rejects with the
 * error of the system or of OpenSSL, prefixed with the path.
 */
async function readTlsMaterial(tls: ListenerTls, sessionIdContext: string, before?: TlsMaterial): Promise<TlsReading> {
  const ca = tls.client_ca_file === undefined ? undefined : await readFile(tls.client_ca_file);
  const settings: SecureContextOptions = {
    ...serverTls(tls.ciphers),
    minVersion: tls.min_version === "1.3" ? "TLSv1.3" : "TLSv1.2",
    // Listeners may trust different client authorities, so sessions are not shared between them.
    sessionIdContext,
    ...(ca === undefined ? {} : { ca }),
  };
  const problems: Error[] = [];
  const pairs: UsedPair[] = [];
  for (const { cert_file, key_file, server_names } of pairsOf(tls)) {
    const paths = `${cert_file}\n${key_file}`;
    try {
      const pair = { cert: await readFile(cert_file), key: await readFile(key_file) };
      pairs.push({ paths, ...pair, names: server_names, context: contextOf({ ...settings, ...pair }, cert_file) });
    } catch (error) {
      const kept = before?.pairs.find((each) => each.paths === paths);
      if (kept === undefined) throw error;
      problems.push(error as Error);
      const { cert, key } = kept;
      pairs.push({ ...kept, names: server_names, context: contextOf({ ...settings, cert, key }, cert_file) });
    }
  }
  return { material: materialOf(tls, settings, ca, pairs), problems };
}

function materialOf(
  tls: ListenerTls,
  settings: SecureContextOptions,
  ca: Buffer | undefined,
  pairs: readonly UsedPair[],
): TlsMaterial {
  const [first] = pairs;
  if (first === undefined) throw new Error("there is no certificate");
  const contexts = new Map<string, SecureContext>();
  const hash = createHash("sha256").update(JSON.stringify(tls));
  for (const content of [...pairs.flatMap(({ cert, key }) => [cert, key]), ca ?? Buffer.alloc(0)]) {
    hash.update(`${content.length} `).update(content);
  }
  for (const { names, context } of pairs) for (const name of names) contexts.set(canonicalHost(name), context);
  return {
    fallback: { ...settings, cert: first.cert, key: first.key },
    contextFor: (sent) => {
      const name = canonicalHost(sent);
      return contexts.get(name) ?? contexts.get(`*${name.slice(name.indexOf("."))}`);
    },
    pairs,
    trust: createHash("sha256")
      .update(ca ?? "")
      .digest("hex"),
    fingerprint: hash.digest("hex"),
  };
}

interface PairFiles {
  readonly cert_file: string;
  readonly key_file: string;
  readonly server_names: readonly string[];
}

/** The listener's own pair comes first. */
function pairsOf({ cert_file, key_file, certificates = [] }: ListenerTls): readonly PairFiles[] {
  return cert_file === undefined || key_file === undefined
    ? certificates
    : [{ cert_file, key_file, server_names: [] }, ...certificates];
}

type Pair = SecureContextOptions & { readonly cert: Buffer; readonly key: Buffer };

function contextOf(options: Pair, path: string): SecureContext {
  try {
    const context = createSecureContext(options);
    // OpenSSL only compares keys of the same type, and with an RSA key and an ECDSA certificate it serves the
    // certificate of another name.
    if (!new X509Certificate(options.cert).checkPrivateKey(createPrivateKey(options.key))) {
      throw new Error("the key does not match it");
    }
    return context;
  } catch (error) {
    throw new Error(`${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
