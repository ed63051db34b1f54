import { oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Authorization } from "./policies.ts";
import { FilePath, ListenPort, Ms, Name, NameList, PositiveMs } from "./primitives.ts";

/** A certificate selected by SNI, case-insensitive. */
const Certificate = strictObject({
  server_names: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }),
  cert_file: FilePath,
  key_file: FilePath,
});

/** Allowed suites by OpenSSL name: all without a further secret. Those of TLS 1.3 begin with `TLS_`. */
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

/** In order of preference; a TLS version without any listed suite keeps its defaults. */
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

/** Minimum rate of a client on which the gateway waits; a lower rate over `grace_ms` ends its request. */
const MinimumRate = strictObject({
  /** 0: none. */
  bytes_per_s: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000 })),
  grace_ms: Type.Optional(PositiveMs),
});

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
  /** From the first byte of the request to the last of the response; 0 for none. */
  request_timeout_ms: Type.Optional(Ms),
  /** Of request bodies. */
  min_request_rate: Type.Optional(MinimumRate),
  min_response_rate: Type.Optional(MinimumRate),
});
export type Listener = Static<typeof Listener>;
