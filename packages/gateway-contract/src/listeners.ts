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

export const ListenerTls = strictObject({
  cert_file: Type.Optional(FilePath),
  key_file: Type.Optional(FilePath),
  certificates: Type.Optional(Type.Array(Certificate)),
  client_ca_file: Type.Optional(FilePath),
  min_version: Type.Optional(oneOf(["1.2", "1.3"], { default: "1.2" })),
});
export type ListenerTls = Static<typeof ListenerTls>;

/** Where clients connect. */
export const Listener = strictObject({
  name: Name,
  address: Type.String({ minLength: 1 }),
  port: ListenPort,
  protocol: Type.Optional(oneOf(["http", "https"], { default: "http" })),
  tls: Type.Optional(ListenerTls),
  http2: Type.Optional(Type.Boolean({ default: true })),
  proxy_protocol: Type.Optional(Type.Boolean({ default: false })),
  policies: Type.Optional(NameList),
  authorization: Type.Optional(Authorization),
  idle_timeout_ms: Type.Optional(PositiveMs),
  header_timeout_ms: Type.Optional(PositiveMs),
  /** From the first byte of the request to the last of the answer; 0 for none. */
  request_timeout_ms: Type.Optional(Ms),
});
export type Listener = Static<typeof Listener>;
