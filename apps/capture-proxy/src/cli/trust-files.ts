import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates } from "node:tls";
import { CA_VARIABLES } from "./client-environment.ts";
import type { TrustPaths } from "./client-environment.ts";
import { javaTrustStore } from "./java-trust-store.ts";

/** The same files in a directory of their own. */
export interface TrustFiles extends TrustPaths {
  readonly directory: string;
  remove(): void;
}

/** Where systems keep their roots in one file, in the order in which Go looks. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/pki/tls/cacert.pem",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** Writes the files to a directory that only this user can read. `remove` takes it away; nothing is left when it fails. */
export function writeTrustFiles(caPem: string, environment: Readonly<Record<string, string | undefined>>): TrustFiles {
  const directory = mkdtempSync(join(tmpdir(), "weir-run-"));
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  try {
    return { directory, ...writtenFiles(directory, caPem, environment), remove };
  } catch (error) {
    remove();
    throw error;
  }
}

function writtenFiles(
  directory: string,
  caPem: string,
  environment: Readonly<Record<string, string | undefined>>,
): TrustPaths {
  const own = certificatesOf(caPem);
  const users = CA_VARIABLES.flatMap((name) => certificatesOf(readIfThere(environment[name])));
  const all = unique([...own, ...users, ...systemRoots()]);
  const write = (name: string, content: string | Uint8Array): string => {
    const path = join(directory, name);
    writeFileSync(path, content, { mode: 0o600, flag: "wx" });
    return path;
  };
  const bundle = write("roots-and-weir-ca.pem", pemText(all));
  return {
    bundle,
    extra: write("weir-ca.pem", pemText(unique([...own, ...users]))),
    javaStore: write("java-trust-store.p12", javaTrustStore(all.map((text) => Buffer.from(text, "base64")))),
    wgetrc: write(
      "wgetrc",
      `${readIfThere(environment["WGETRC"] ?? join(homedir(), ".wgetrc"))}\nca_certificate = ${bundle}\n`,
    ),
  };
}

function systemRoots(): string[] {
  for (const path of SYSTEM_BUNDLES) {
    const found = certificatesOf(readIfThere(path));
    if (found.length > 0) return found;
  }
  const listed = certificatesOf(getCACertificates("system").join("\n"));
  return listed.length > 0 ? listed : certificatesOf(getCACertificates("bundled").join("\n"));
}

function readIfThere(path: string | undefined): string {
  if (path === undefined || path === "") return "";
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** The certificates of a PEM text as base64 without line breaks. */
function certificatesOf(pem: string): string[] {
  const blocks = pem.matchAll(/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----([^-]*)-----END/g);
  return Array.from(blocks, ([, base64 = ""]) => base64.replace(/\s+/g, ""));
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

function pemText(certificates: readonly string[]): string {
  return certificates
    .map((text) => `-----BEGIN CERTIFICATE-----\n${text.replace(/.{64}(?=.)/g, "$&\n")}\n-----END CERTIFICATE-----\n`)
    .join("");
}
