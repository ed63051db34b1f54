// Tested by ../../test/tls.test.ts
import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";
import { canonicalHost } from "@headworks/host-patterns";
import type { ListenerTls } from "@headworks/gateway-contract";

/** Certificates as they were read from their files at one moment. */
export interface TlsMaterial {
  /** For names that nothing else is for, and for clients that send none. */
  readonly fallback: SecureContextOptions;
  /** What is for a name that a client sends: a certificate of exactly that name, before one of `*.` and all but its first label. */
  contextFor(name: string): SecureContext | undefined;
  /** The same for the same authorities of clients: a session must not outlive the trust it began under. */
  readonly trust: string;
  /** The same for the same contents of all files. */
  readonly fingerprint: string;
}

/** All files that a listener's certificates come from. */
export function tlsFiles(tls: ListenerTls): string[] {
  const pairs = [tls, ...(tls.certificates ?? [])];
  const files = pairs.flatMap(({ cert_file, key_file }) => [cert_file, key_file]);
  return [...new Set([...files, tls.client_ca_file].filter((path) => path !== undefined))];
}

/**
 * Reads all certificates and makes their contexts, which costs too much to be done for each client. Rejects with what
 * the system says of a file, or OpenSSL of its content, with the path in front.
 */
export async function readTlsMaterial(tls: ListenerTls, sessionIdContext: string): Promise<TlsMaterial> {
  const files = tlsFiles(tls);
  const contents = await Promise.all(files.map(async (path) => await readFile(path)));
  const hash = createHash("sha256").update(JSON.stringify(tls));
  for (const content of contents) hash.update(`${content.length} `).update(content);
  const contentOf = (path: string | undefined): Buffer | undefined =>
    path === undefined ? undefined : contents[files.indexOf(path)];
  const ca = contentOf(tls.client_ca_file);
  const contexts = new Map<string, SecureContext>();
  let fallback: SecureContextOptions | undefined;
  const certificates = tls.certificates ?? [];
  const single = tls.cert_file === undefined ? [] : [{ ...tls, server_names: [] }];
  for (const entry of [...single, ...certificates]) {
    const cert = contentOf(entry.cert_file);
    const key = contentOf(entry.key_file);
    if (cert === undefined || key === undefined) continue;
    const options: SecureContextOptions = {
      cert,
      key,
      minVersion: tls.min_version === "1.3" ? "TLSv1.3" : "TLSv1.2",
      // Sessions are not carried from one listener to another, whose clients are known by other authorities.
      sessionIdContext,
      ...(ca === undefined ? {} : { ca }),
    };
    const context = contextOf({ ...options, cert, key }, entry.cert_file ?? "");
    fallback ??= options;
    for (const name of entry.server_names) contexts.set(canonicalHost(name), context);
  }
  if (fallback === undefined) throw new Error("there is no certificate");
  const trust = createHash("sha256")
    .update(ca ?? "")
    .digest("hex");
  return {
    fallback,
    contextFor: (sent) => {
      const name = sent.toLowerCase();
      return contexts.get(name) ?? contexts.get(`*${name.slice(name.indexOf("."))}`);
    },
    trust,
    fingerprint: hash.digest("hex"),
  };
}

type Pair = SecureContextOptions & { readonly cert: Buffer; readonly key: Buffer };

function contextOf(options: Pair, path: string): SecureContext {
  try {
    const context = createSecureContext(options);
    // OpenSSL compares keys of one kind only, and shows the certificate of another name in place of an ECDSA one with an RSA key.
    if (!new X509Certificate(options.cert).checkPrivateKey(createPrivateKey(options.key))) {
      throw new Error("the key does not belong to it");
    }
    return context;
  } catch (error) {
    throw new Error(`${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
