import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import { createServer, type Server, type TLSSocket } from "node:tls";
import type { ListenerTls } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import type { SessionTickets } from "./session-tickets.ts";
import { readTlsMaterial, tlsFiles, type TlsMaterial } from "./tls-material.ts";

/** Watches a file; one change may be reported several times. */
export type WatchFile = (path: string, changed: () => void) => { close(): Promise<void> };

export interface TlsParts {
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

/** A TLS handshake in progress. */
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
    const key = placeOf(socket);
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
    const key = placeOf(socket);
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
function placeOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** OpenSSL allows at most 32 bytes. */
function sessionContext(listener: string): string {
  return createHash("sha256").update(listener).digest("hex").slice(0, 32);
}
