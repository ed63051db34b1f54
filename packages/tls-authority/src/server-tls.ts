import { constants } from "node:crypto";

/** A part of the options of `tls.createSecureContext`. */
export interface ServerTls {
  readonly ciphers: string;
  readonly honorCipherOrder: true;
  readonly secureOptions: number;
  readonly dhparam?: "auto";
}

const SUITES_1_3 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/** Forward secrecy and authenticated encryption (RFC 9325, 4.2), for ECDSA and RSA certificates. */
const SUITES_1_2 = [
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
];

/** Suites that old clients (some of them with TLS 1.2) share with ECDSA certificates. */
const OLD_SUITES = [
  "ECDHE-ECDSA-AES128-SHA256",
  "ECDHE-ECDSA-AES256-SHA384",
  "ECDHE-ECDSA-AES128-SHA",
  "ECDHE-ECDSA-AES256-SHA",
];

/**
 * TLS options of all servers apart from certificates and versions: suites in the server's order, ChaCha20 for clients
 * that prefer it, and no renegotiation, which would let clients exhaust the server. `named` are OpenSSL names, best
 * first. They replace the suites of the versions they belong to: without a TLS 1.3 name, all TLS 1.3 suites stay.
 * Unknown names must have been refused before.
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
    // OpenSSL selects DHE suites only with parameters.
    ...(suites1_2.some((name) => name.startsWith("DHE-")) ? { dhparam: "auto" } : {}),
  };
}

/** As {@link serverTls} for old clients, from TLS 1.0 on: CBC suites come last, and SHA-1 signatures are allowed. */
export function oldClientTls(): ServerTls & { readonly minVersion: "TLSv1" } {
  // TLS 1.0 and 1.1 sign with SHA-1, which OpenSSL allows only at its lowest level.
  return { ...serverTls([...SUITES_1_2, ...OLD_SUITES, "@SECLEVEL=0"]), minVersion: "TLSv1" };
}
