import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeDirectorySync } from "@headworks/files";
import { AuthorityError, CertificateAuthority } from "@headworks/tls-authority";
import { CommandFailure, EXIT } from "./exit-codes.ts";

/** The files of the CA in its directory. */
export function authorityPaths(directory: string): {
  readonly certificate: string;
  readonly key: string;
  /** Holds the fingerprint of the CA that was imported last; a renewal leaves it, and it means nothing from then on. */
  readonly imported: string;
} {
  return {
    certificate: join(directory, "weir-ca.pem"),
    key: join(directory, "weir-ca-key.pem"),
    imported: join(directory, "weir-ca-imported.txt"),
  };
}

/**
 * Puts a CA made elsewhere in the place of the one in a directory; the old files stay beside it. Nothing is touched
 * unless the files are a usable CA and its key. Throws {@link CommandFailure} with a sentence.
 */
export function importAuthority(
  directory: string,
  certificateFile: string,
  keyFile: string,
  stamp: string,
): CertificateAuthority {
  const certificatePem = readPem(certificateFile);
  const keyPem = readPem(keyFile);
  const authority = load(certificatePem, keyPem);
  const paths = authorityPaths(directory);
  makeDirectorySync(dirname(paths.key));
  // Whole files first, renames after: an interruption leaves the old pair, or a pair that the start refuses with a sentence.
  const certificate = writeAside(paths.certificate, certificatePem);
  const key = writeAside(paths.key, keyPem);
  renameSync(writeAside(paths.imported, `${authority.fingerprintSha256}\n`), paths.imported);
  for (const path of [paths.key, paths.certificate]) {
    if (existsSync(path)) copyFileSync(path, path.replace(/\.pem$/, `-${stamp}.pem`));
  }
  renameSync(key, paths.key);
  renameSync(certificate, paths.certificate);
  return authority;
}

function load(certificatePem: string, keyPem: string): CertificateAuthority {
  try {
    return CertificateAuthority.load({ certificatePem, keyPem });
  } catch (error) {
    if (!(error instanceof AuthorityError)) throw error;
    throw new CommandFailure(EXIT.failure, error.message, { cause: error });
  }
}

function readPem(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CommandFailure(EXIT.failure, `Cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}

function writeAside(path: string, text: string): string {
  const temporary = `${path}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  writeFileSync(temporary, text, { mode: 0o600, flag: "wx", flush: true });
  return temporary;
}
