import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { serverTls, type ServerTls } from "@headworks/tls-authority";
import type { Admin } from "@headworks/gateway-contract";
import type { Logger } from "pino";

/** Certificate, key and client CA in PEM, with further TLS settings. */
export interface TlsMaterial extends ServerTls {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca: Buffer;
  readonly minVersion: "TLSv1.2";
}

type TlsFiles = NonNullable<Admin["tls"]>;

export interface FollowParts {
  /** Resolves a file path of the document. */
  readonly resolvePath: (path: string) => string;
  /** Calls `changed` on content changes of a file. */
  readonly watch: (path: string, changed: () => void) => { close(): Promise<void> };
  /** Applies valid material. */
  readonly renew: (material: TlsMaterial) => void;
  readonly log: Logger;
}

/** Reads the files; throws errors of the system or TLS. */
export function readTlsMaterial(files: TlsFiles, resolvePath: (path: string) => string): TlsMaterial {
  const read = (path: string): Buffer => readFileSync(resolvePath(path));
  const material: TlsMaterial = {
    ...serverTls(files.ciphers),
    minVersion: "TLSv1.2",
    cert: read(files.cert_file),
    key: read(files.key_file),
    ca: read(files.client_ca_file),
  };
  // Fails early on invalid combinations.
  createSecureContext(material);
  // createSecureContext compares keys of equal type only.
  if (!new X509Certificate(material.cert).checkPrivateKey(createPrivateKey(material.key))) {
    throw new Error(`The key in ${files.key_file} does not belong to the certificate in ${files.cert_file}`);
  }
  return material;
}

/** Reloads changed files without closing the listener; the old pair stays until the new one matches. */
export class TlsFollower {
  readonly #parts: FollowParts;
  #files: TlsFiles;
  #watches: readonly { close(): Promise<void> }[];

  constructor(files: TlsFiles, parts: FollowParts) {
    this.#parts = parts;
    this.#files = files;
    this.#watches = this.#watchAll();
  }

  /** A new configuration may name other files. */
  async follow(files: TlsFiles): Promise<void> {
    if (JSON.stringify(files) === JSON.stringify(this.#files)) return;
    await this.close();
    this.#files = files;
    this.#watches = this.#watchAll();
    this.#renew();
  }

  async close(): Promise<void> {
    await Promise.all(this.#watches.map(async (watch) => await watch.close()));
  }

  #watchAll(): readonly { close(): Promise<void> }[] {
    const { cert_file, key_file, client_ca_file } = this.#files;
    const paths = new Set([cert_file, key_file, client_ca_file].map((path) => this.#parts.resolvePath(path)));
    return [...paths].map((path) => this.#parts.watch(path, () => this.#renew()));
  }

  #renew(): void {
    const { resolvePath, renew, log } = this.#parts;
    try {
      renew(readTlsMaterial(this.#files, resolvePath));
      log.info({ code: "admin_tls_renewed" }, "The admin API serves the new certificate");
    } catch (error) {
      const why = error instanceof Error ? error.message : "unknown";
      log.warn({ code: "admin_tls_kept", why }, "The admin API's new certificate cannot be used; the old one serves");
    }
  }
}
