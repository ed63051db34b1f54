import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { makeDirectorySync } from "@headworks/files";
import { AuthorityError, CertificateAuthority } from "@headworks/tls-authority";

/** Reason why there is no usable CA. */
export class AuthorityStoreError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "AuthorityStoreError";
  }
}

/** PEM files of an imported CA. */
export interface ImportedFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

export interface AuthorityStoreOptions {
  /** Created if missing. */
  readonly directory: string;
  readonly nowMs: () => number;
  readonly log: { warn(facts: object, message: string): void; info(facts: object, message: string): void };
  /** Uses an existing CA; its files are never written. */
  readonly imported?: ImportedFiles;
}

export interface AuthorityStore {
  readonly current: CertificateAuthority;
  /** Path of the certificate's PEM file on this machine. */
  readonly certificatePath: string;
  /** True if {@link AuthorityStoreOptions} named the CA or an import put it in the directory. */
  readonly isImported: boolean;
  /** Replaces the CA and keeps the old files. Throws {@link AuthorityStoreError}. */
  renew(): void;
  /** Calls `listener` after each replacement; returns the function that unsubscribes. */
  onChange(listener: (authority: CertificateAuthority) => void): () => void;
}

/**
 * Loads the CA from its directory, or creates one on the first start. An expired generated CA is replaced. Throws
 * {@link AuthorityStoreError} if files are missing, damaged or do not belong together: clients trust this CA, so it is
 * never replaced silently.
 */
export function openAuthorityStore(options: AuthorityStoreOptions): AuthorityStore {
  if (options.imported) {
    const authority = load(options.imported.certificateFile, options.imported.keyFile, options.nowMs());
    return new Store(options, authority, options.imported.certificateFile);
  }
  const files = authorityFiles(options.directory);
  makeDirectorySync(files.directory);
  return new Store(options, openOwn(files, options), files.certificate);
}

interface Files {
  readonly directory: string;
  readonly certificate: string;
  readonly key: string;
  /** File with the fingerprint of the CA that was imported last. */
  readonly imported: string;
}

function authorityFiles(directory: string): Files {
  return {
    directory,
    certificate: join(directory, "weir-ca.pem"),
    key: join(directory, "weir-ca-key.pem"),
    imported: join(directory, "weir-ca-imported.txt"),
  };
}

function openOwn(files: Files, options: AuthorityStoreOptions): CertificateAuthority {
  const hasCertificate = existsSync(files.certificate);
  const hasKey = existsSync(files.key);
  if (hasCertificate && !hasKey) {
    throw new AuthorityStoreError(
      `${files.key} is missing: put it back, or remove ${files.certificate} to have a new CA made, which clients must trust anew`,
    );
  }
  // A key alone is left by an interrupted first start; its certificate never existed, so no client trusts it.
  if (!hasCertificate) return create(files);
  keepPrivate(files.key, options);
  try {
    return load(files.certificate, files.key, options.nowMs());
  } catch (error) {
    const isExpired =
      error instanceof AuthorityStoreError && error.cause instanceof AuthorityError && error.cause.code === "expired";
    if (!isExpired) throw error;
    options.log.warn(
      { path: files.certificate },
      "the CA has expired; a new one was made, which clients must trust anew",
    );
    return replace(files, options.nowMs());
  }
}

function load(certificateFile: string, keyFile: string, nowMs: number): CertificateAuthority {
  const certificatePem = read(certificateFile);
  const keyPem = read(keyFile);
  try {
    return CertificateAuthority.load({ certificatePem, keyPem }, new Date(nowMs));
  } catch (error) {
    if (!(error instanceof AuthorityError)) throw error;
    throw new AuthorityStoreError(`The CA in ${certificateFile} cannot be used: ${error.message.replace(/\.$/, "")}`, {
      cause: error,
    });
  }
}

/** PEM files are a few kilobytes; a much larger file is something else. */
const MAX_PEM_BYTES = 1_048_576;

function read(path: string): string {
  try {
    if (statSync(path).size > MAX_PEM_BYTES) throw new Error("it is too large for a PEM file");
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new AuthorityStoreError(`Cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}

function keepPrivate(keyFile: string, options: AuthorityStoreOptions): void {
  if (process.platform === "win32" || (statSync(keyFile).mode & 0o077) === 0) return;
  options.log.warn({ path: keyFile }, "the CA's private key could be read by other users; its mode is now 0600");
  chmodSync(keyFile, 0o600);
}

/** Writes the key first: a certificate without its key could not be repaired. */
function create(files: Files): CertificateAuthority {
  const authority = CertificateAuthority.create();
  writeNew(files.key, authority.keyPem());
  writeNew(files.certificate, authority.certificatePem);
  return authority;
}

/** Writes a file atomically; a leftover of an interrupted start is moved aside, never overwritten. */
function writeNew(path: string, text: string): void {
  if (existsSync(path)) renameSync(path, `${path}.unused-${randomBytes(4).toString("hex")}`);
  const temporary = writeTemporary(path, text);
  try {
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncDirectory(path);
}

/** Keeps the old pair under a name with the time; a hard link keeps the path occupied at every moment. */
function replace(files: Files, nowMs: number): CertificateAuthority {
  const authority = CertificateAuthority.create();
  const stamp = new Date(nowMs).toISOString().replace(/[-:]|\.\d+/g, "");
  const suffix = `${stamp}-${randomBytes(2).toString("hex")}`;
  const key = writeTemporary(files.key, authority.keyPem());
  const certificate = writeTemporary(files.certificate, authority.certificatePem);
  keepAside(files.key, join(files.directory, `weir-ca-key-${suffix}.pem`));
  keepAside(files.certificate, join(files.directory, `weir-ca-${suffix}.pem`));
  renameSync(key, files.key);
  renameSync(certificate, files.certificate);
  syncDirectory(files.certificate);
  return authority;
}

function keepAside(path: string, aside: string): void {
  try {
    linkSync(path, aside);
  } catch {
    // For file systems without hard links.
    writeFileSync(aside, readFileSync(path), { mode: 0o600, flag: "wx", flush: true });
  }
}

function writeTemporary(path: string, text: string): string {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  writeFileSync(temporary, text, { mode: 0o600, flag: "wx", flush: true });
  return temporary;
}

function syncDirectory(file: string): void {
  if (process.platform === "win32") return;
  const handle = openSync(join(file, ".."), "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

class Store implements AuthorityStore {
  current: CertificateAuthority;
  readonly certificatePath: string;
  readonly #options: AuthorityStoreOptions;
  readonly #importedFingerprint: string | undefined;
  readonly #listeners = new Set<(authority: CertificateAuthority) => void>();

  constructor(options: AuthorityStoreOptions, authority: CertificateAuthority, certificatePath: string) {
    this.#options = options;
    this.current = authority;
    this.certificatePath = certificatePath;
    const { imported } = authorityFiles(options.directory);
    if (existsSync(imported)) this.#importedFingerprint = read(imported).trim();
  }

  get isImported(): boolean {
    return this.#options.imported !== undefined || this.#importedFingerprint === this.current.fingerprintSha256;
  }

  renew(): void {
    if (this.#options.imported) {
      throw new AuthorityStoreError("The CA was imported: replace its files and start again");
    }
    this.current = replace(authorityFiles(this.#options.directory), this.#options.nowMs());
    this.#options.log.info(
      { fingerprint: this.current.fingerprintSha256 },
      "a new CA is in force; clients must trust it anew",
    );
    for (const listener of this.#listeners) listener(this.current);
  }

  onChange(listener: (authority: CertificateAuthority) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
