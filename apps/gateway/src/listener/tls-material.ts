import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";
import { canonicalHost } from "@headworks/host-patterns";
import { serverTls } from "@headworks/tls-authority";
import type { ListenerTls } from "@headworks/gateway-contract";

/** Certificates as read from their files at one moment. */
export interface TlsMaterial {
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
  readonly place: string;
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly names: readonly string[];
  readonly context: SecureContext;
}

/** All certificate and key files of a listener. */
export function tlsFiles(tls: ListenerTls): string[] {
  const pairs = [tls, ...(tls.certificates ?? [])];
  const files = pairs.flatMap(({ cert_file, key_file }) => [cert_file, key_file]);
  return [...new Set([...files, tls.client_ca_file].filter((path) => path !== undefined))];
}

/** The new material, and the files that could not be used. */
export interface TlsReading {
  readonly material: TlsMaterial;
  readonly problems: readonly Error[];
}

/**
 * Reads all certificates and creates their contexts, which is too expensive per client. A certificate that cannot be
 * used is taken from `before`, so that it does not block the renewal of others; without one there, rejects with the
 * error of the system or of OpenSSL, prefixed with the path.
 */
export async function readTlsMaterial(
  tls: ListenerTls,
  sessionIdContext: string,
  before?: TlsMaterial,
): Promise<TlsReading> {
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
    const place = `${cert_file}\n${key_file}`;
    try {
      const pair = { cert: await readFile(cert_file), key: await readFile(key_file) };
      pairs.push({ place, ...pair, names: server_names, context: contextOf({ ...settings, ...pair }, cert_file) });
    } catch (error) {
      const kept = before?.pairs.find((each) => each.place === place);
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
