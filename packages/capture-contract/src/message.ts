import { nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";

const pair = Type.Unsafe<[string, string]>({ type: "array", items: { type: "string" }, minItems: 2, maxItems: 2 });

/** Fields as they came: order, case and duplicates kept. */
export const HeadersList = Type.Array(pair, {
  description: "Name and value pairs in wire order, duplicates kept",
});

export const BodyState = oneOf(["none", "complete", "truncated", "not_stored"], {
  description:
    "`none`: no body; `complete`: stored completely; `truncated`: cut at `max_body_size`; `not_stored`: switched off, shed under load, refused by the disk, or larger than `max_total_size_mb`, alone or with the other bodies of its entry",
});

const bodyProperties = {
  body: nullable(Type.String(), {
    description: "UTF-8 text, otherwise `base64:` and standard base64; null if absent or not requested",
  }),
  body_encoding: nullable(oneOf(["utf8", "base64"])),
  body_size: Type.Integer({ minimum: 0, description: "Bytes on the wire, without transfer coding" }),
  body_stored_size: Type.Integer({ minimum: 0, description: "Bytes stored" }),
  body_state: BodyState,
  truncated: Type.Boolean({ description: "The stored body was cut at `max_body_size`: `body_state` is `truncated`" }),
};

export const RequestData = strictObject(
  {
    method: Type.String(),
    url: Type.String(),
    host: Type.String(),
    path: Type.String({ description: "Path and query" }),
    headers: Type.Record(Type.String(), Type.String(), { description: "Duplicates joined by a comma" }),
    headers_list: HeadersList,
    trailers_list: Type.Optional(HeadersList),
    ...bodyProperties,
    content_type: nullable(Type.String()),
    http_version: nullable(Type.String()),
  },
  { $id: "RequestData" },
);
export type RequestData = Static<typeof RequestData>;

export const ResponseData = strictObject(
  {
    status_code: Type.Integer(),
    status_message: nullable(Type.String()),
    headers: Type.Record(Type.String(), Type.String()),
    headers_list: HeadersList,
    trailers_list: Type.Optional(HeadersList),
    ...bodyProperties,
    content_type: nullable(Type.String()),
    duration_ms: Type.Number(),
    http_version: nullable(Type.String()),
  },
  { $id: "ResponseData" },
);
export type ResponseData = Static<typeof ResponseData>;

/** Milliseconds of each stage; null where a stage did not happen (a reused connection has no dns, connect, tls). */
export const Timings = strictObject(
  {
    blocked: nullable(Type.Number()),
    dns: nullable(Type.Number()),
    connect: nullable(Type.Number({ description: "TCP only, without `tls`" })),
    tls: nullable(Type.Number()),
    send: nullable(Type.Number()),
    wait: nullable(Type.Number()),
    receive: nullable(Type.Number()),
  },
  { $id: "Timings" },
);
export type Timings = Static<typeof Timings>;

/** Kinds of rules that can touch an exchange. */
export const RuleKind = oneOf(["block", "rewrite", "mock", "breakpoint", "throttle", "script", "plugin"]);
export type RuleKind = Static<typeof RuleKind>;

/** What one rule did to an exchange. */
export const RuleTrace = strictObject(
  {
    kind: RuleKind,
    rule_id: Type.String(),
    rule_name: Type.String(),
    phase: oneOf(["request", "response"]),
    changes: Type.Array(Type.String(), {
      description: "Readable list of what was done, in order; empty if the rule only matched",
    }),
  },
  { $id: "RuleTrace" },
);
export type RuleTrace = Static<typeof RuleTrace>;

/** Where and why an exchange failed. */
export const Failure = strictObject(
  {
    stage: oneOf([
      "resolve",
      "connect",
      "proxy-handshake",
      "tls",
      "send",
      "receive",
      "client-read",
      "client-write",
      "policy",
    ]),
    side: oneOf(["client", "upstream", "internal"]),
    code: Type.String({ description: "Stable code such as `UPSTREAM_REFUSED`" }),
    message: Type.String(),
  },
  { $id: "Failure" },
);
export type Failure = Static<typeof Failure>;

/** What TLS looked like on both sides of an intercepted exchange. */
export const TlsInfo = strictObject(
  {
    client_version: nullable(Type.String()),
    client_cipher: nullable(Type.String()),
    sni: nullable(Type.String()),
    upstream_version: nullable(Type.String()),
    upstream_cipher: nullable(Type.String()),
    upstream_verified: nullable(Type.Boolean({ description: "False if verification is off for this host" })),
    upstream_subject: nullable(Type.String()),
    upstream_issuer: nullable(Type.String()),
    upstream_valid_to: nullable(Type.String()),
    upstream_client_certificate: nullable(
      oneOf(["sent", "none"], {
        description: "Certificate sent to an origin that requested one; null if none was requested",
      }),
    ),
  },
  { $id: "TlsInfo" },
);
export type TlsInfo = Static<typeof TlsInfo>;
