import { constants } from "node:crypto";

/** A part of what `tls.createSecureContext` takes. */
export interface ServerTls {
  readonly ciphers: string;
  readonly honorCipherOrder: true;
  readonly secureOptions: number;
  readonly dhparam?: "auto";
}

const SUITES_1_3 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/** Forward secrecy and authenticated encryption (RFC 9325, 4.2), for certificates of ECDSA and RSA keys. */
const SUITES_1_2 = [
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
];

/** What clients before TLS 1.2, and some of it, have in common with certificates of ECDSA keys. */
const OLD_SUITES = [
  "ECDHE-ECDSA-AES128-SHA256",
  "ECDHE-ECDSA-AES256-SHA384",
  "ECDHE-ECDSA-AES128-SHA",
  "ECDHE-ECDSA-AES256-SHA",
];

/**
 * What each of our TLS servers is made with, besides certificates and versions: suites in the server's order, where
 * clients that prefer ChaCha20 get it, and no renegotiation, by which clients would make the server work without end.
 *
 * `named` are names of OpenSSL, best first. They replace the suites of those versions that they belong to: without one
 * of TLS 1.3 among them, all of TLS 1.3 stay. Unknown names must have been refused before.
 */
export function serverTls(named: readonly string[] = []): ServerTls {
  const isOf1_3 = (name: string): boolean => name.startsWith("TLS_");
  const suites1_3 = named.filter((name) => isOf1_3(name));
  const suites1_2 = named.filter((name) => !isOf1_3(name));
  const suites = [
    ...(suites1_3.length === 0 ? SUITES_1_3 : suites1_3),
    ...(suites1_2.length === 0 ? SUITES_1_2 : suites1_2),
  ];
  return {
    ciphers: suites.join(":"),
    honorCipherOrder: true,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_PRIORITIZE_CHACHA,
    // OpenSSL chooses no suite of DHE without its parameters.
    ...(suites1_2.some((name) => name.startsWith("DHE-")) ? { dhparam: "auto" } : {}),
  };
}

/** The same for clients too old for that, from TLS 1.0 on: CBC suites come last, and signatures of SHA-1 are allowed. */
export function oldClientTls(): ServerTls & { readonly minVersion: "TLSv1" } {
  // TLS 1.0 and 1.1 sign with SHA-1, which OpenSSL allows at its lowest level alone.
  return { ...serverTls([...SUITES_1_2, ...OLD_SUITES, "@SECLEVEL=0"]), minVersion: "TLSv1" };
}
