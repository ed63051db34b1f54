import { oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Authorization } from "./authorization.ts";
import { FilePath, ListenPort, Ms, Name, NameList, PositiveMs } from "./primitives.ts";

/** One certificate of a listener, chosen by the server name that a client sends, in any letter case. */
const Certificate = strictObject({
  server_names: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }),
  cert_file: FilePath,
  key_file: FilePath,
});

/**
 * Suites that a listener may be told to use, by OpenSSL's names: all that need no secret besides the certificate's key.
 * Those of TLS 1.3 begin with `TLS_`.
 */
const CIPHER_SUITES = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "TLS_AES_128_CCM_SHA256",
  ...["ECDHE-ECDSA", "ECDHE-RSA", "DHE-RSA"].flatMap((exchange) => [
    `${exchange}-AES128-GCM-SHA256`,
    `${exchange}-AES256-GCM-SHA384`,
    `${exchange}-CHACHA20-POLY1305`,
    `${exchange}-AES128-SHA256`,
    exchange === "DHE-RSA" ? "DHE-RSA-AES256-SHA256" : `${exchange}-AES256-SHA384`,
    `${exchange}-AES128-SHA`,
    `${exchange}-AES256-SHA`,
  ]),
  "AES128-GCM-SHA256",
  "AES256-GCM-SHA384",
  "AES128-SHA256",
  "AES256-SHA256",
  "AES128-SHA",
  "AES256-SHA",
];

/** Best first; suites of a version that none is named of stay as they are. */
export const CipherSuites = Type.Array(oneOf(CIPHER_SUITES), { minItems: 1, uniqueItems: true });

export const ListenerTls = strictObject({
  cert_file: Type.Optional(FilePath),
  key_file: Type.Optional(FilePath),
  certificates: Type.Optional(Type.Array(Certificate)),
  client_ca_file: Type.Optional(FilePath),
  min_version: Type.Optional(oneOf(["1.2", "1.3"], { default: "1.2" })),
  ciphers: Type.Optional(CipherSuites),
});
export type ListenerTls = Static<typeof ListenerTls>;

/** The least speed of a client while it is the one waited for; less, over a stretch of `grace_ms`, ends its request. */
const MinimumRate = strictObject({
  /** 0: none. */
  bytes_per_s: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000 })),
  grace_ms: Type.Optional(PositiveMs),
});

/** Where clients connect. */
export const Listener = strictObject({
  name: Name,
  address: Type.String({ minLength: 1 }),
  port: ListenPort,
  protocol: Type.Optional(oneOf(["http", "https"], { default: "http" })),
  tls: Type.Optional(ListenerTls),
  http2: Type.Optional(Type.Boolean({ default: true })),
  proxy_protocol: Type.Optional(Type.Boolean({ default: false })),
  metrics: Type.Optional(Type.Boolean({ default: false })),
  policies: Type.Optional(NameList),
  authorization: Type.Optional(Authorization),
  idle_timeout_ms: Type.Optional(PositiveMs),
  header_timeout_ms: Type.Optional(PositiveMs),
  /** From the first byte of the request to the last of the answer; 0 for none. */
  request_timeout_ms: Type.Optional(Ms),
  /** With which bodies of requests arrive. */
  min_request_rate: Type.Optional(MinimumRate),
  /** With which responses are taken. */
  min_response_rate: Type.Optional(MinimumRate),
});
export type Listener = Static<typeof Listener>;
