import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { SecureContextOptions, SecureVersion } from "node:tls";
import { validateHostPattern } from "@headworks/host-patterns";

/** The client certificate for origins that request one. */
export interface ClientCertificate {
  /** Host pattern. */
  readonly host: string;
  readonly identity: Pick<SecureContextOptions, "cert" | "key" | "pfx" | "passphrase">;
}

/** The oldest version of TLS that is spoken with some hosts. */
export interface TlsMinVersion {
  /** Host pattern. */
  readonly host: string;
  readonly version: SecureVersion;
}

type Reading<Value> = { readonly value: Value } | { readonly problem: string };

const CERTIFICATE_FORM = "must be HOST=FILE, with ;key=FILE and ;passphrase-file=FILE where they are needed";
const ABSOLUTE_PATH = /^(?:\/|[A-Za-z]:[\\/])[^\0]*$/;

/**
 * Reads one entry of `upstream_client_certificates` and its files: `HOST=FILE`, where FILE is PKCS 12, or PEM with the
 * certificate, its chain and its key; `;key=FILE` names a key that is in a file of its own, `;passphrase-file=FILE`
 * a file whose first line opens the key.
 */
export function readClientCertificate(entry: string): Reading<ClientCertificate> {
  const [assignment = "", ...rest] = entry.split(";").map((part) => part.trim());
  const [host, certificateFile] = splitOnce(assignment);
  const named = new Map(rest.map(splitOnce));
  const isKnown = [...named].every(([name, file]) => file !== "" && (name === "key" || name === "passphrase-file"));
  if (certificateFile === "" || !isKnown || named.size < rest.length) return { problem: CERTIFICATE_FORM };
  const hostProblem = validateHostPattern(host);
  if (hostProblem !== undefined) return { problem: hostProblem.replace(/\.$/, "") };
  const relative = [certificateFile, ...named.values()].find((file) => !ABSOLUTE_PATH.test(file));
  if (relative !== undefined) return { problem: `${relative} must be an absolute path` };
  try {
    const passphraseFile = named.get("passphrase-file");
    const passphrase = passphraseFile === undefined ? undefined : firstLine(read(passphraseFile));
    const identity = readIdentity(certificateFile, named.get("key"), passphrase);
    createSecureContext(identity);
    return { value: { host, identity } };
  } catch (error) {
    return { problem: `the client certificate ${certificateFile} cannot be used: ${reason(error as TlsFileError)}` };
  }
}

const VERSIONS: Readonly<Record<string, SecureVersion>> = {
  "1.0": "TLSv1",
  "1.1": "TLSv1.1",
  "1.2": "TLSv1.2",
  "1.3": "TLSv1.3",
};

/** Reads one entry of `tls_min_version`: `HOST=1.0`, or another version up to 1.3. */
export function readTlsMinVersion(entry: string): Reading<TlsMinVersion> {
  const [host, text] = splitOnce(entry);
  const version = VERSIONS[text];
  if (version === undefined) {
    return { problem: `must be HOST=VERSION, with one of ${Object.keys(VERSIONS).join(", ")}` };
  }
  const problem = validateHostPattern(host);
  return problem === undefined ? { value: { host, version } } : { problem: problem.replace(/\.$/, "") };
}

/** The parts around the first `=`, trimmed; the second is empty where there is none. */
function splitOnce(text: string): [string, string] {
  const at = text.indexOf("=");
  return at === -1 ? [text.trim(), ""] : [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

function readIdentity(
  certificateFile: string,
  keyFile: string | undefined,
  passphrase: string | undefined,
): ClientCertificate["identity"] {
  const certificate = read(certificateFile);
  const secret = passphrase === undefined ? {} : { passphrase };
  const isPem = certificate.includes("-----BEGIN ");
  if (!isPem && keyFile === undefined) return { pfx: certificate, ...secret };
  const key = keyFile === undefined ? certificate : read(keyFile);
  if (!key.includes("PRIVATE KEY-----")) throw new Error(`${keyFile ?? certificateFile} holds no private key`);
  return { cert: certificate, key, ...secret };
}

/** Certificates and keys are small: a larger file is another one. */
const MAX_FILE_BYTES = 1_048_576;

function read(file: string): Buffer {
  const bytes = readFileSync(file);
  if (bytes.length > MAX_FILE_BYTES) throw new Error(`${file} is larger than ${MAX_FILE_BYTES} bytes`);
  return bytes;
}

function firstLine(bytes: Buffer): string {
  return /^[^\r\n]*/.exec(bytes.toString("utf8"))?.[0] ?? "";
}

interface TlsFileError extends Error {
  readonly code?: string;
  readonly reason?: string;
}

/** Failures by code, and those without one by message, in words that say what to do. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EISDIR: "it is a directory",
  ERR_OSSL_BAD_DECRYPT: "the passphrase is wrong",
  ERR_OSSL_UNSUPPORTED: "the key needs a passphrase, or has a form that is not supported",
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: "the key belongs to another certificate",
  ERR_OSSL_PEM_NO_START_LINE: "it holds no certificate",
  ERR_CRYPTO_UNSUPPORTED_OPERATION:
    "its encryption is out of use; write the file anew with openssl pkcs12 -legacy -in OLD -nodes | openssl pkcs12 -export -out NEW",
  "mac verify failure": "the passphrase is wrong or missing",
  "wrong tag": "it is neither PEM nor PKCS 12",
  "not enough data": "it is neither PEM nor PKCS 12",
};

function reason(error: TlsFileError): string {
  return REASONS[error.code ?? error.message] ?? error.reason ?? error.message;
}
