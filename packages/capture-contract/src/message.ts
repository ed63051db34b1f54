import type { Static } from "typebox";
import { nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import { resourceTypes } from "@headworks/http-fields";
import { Id, Timestamp } from "./primitives.ts";

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

/** The effect of one rule on an exchange. */
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

/** Stage and reason of a failed exchange. */
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

/** TLS on both sides of an intercepted exchange. */
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

export const EntryState = oneOf(["pending", "complete", "failed", "closed"], {
  description:
    "`closed`: the client disconnected during the response, as browsers end event streams; not an error, although `failure` is set",
});

export type EntryState = Static<typeof EntryState>;

/** The type of an exchange's resource, or a tunnel; for the query field `type:` and the type pills. */
export const ResourceType = oneOf([...resourceTypes, "tunnel"]);

export type ResourceType = Static<typeof ResourceType>;

/** A stored exchange or tunnel. */
export const TrafficEntry = strictObject(
  {
    id: Id,
    seq: Type.Integer({ description: "Ascending number in order of arrival; the # column" }),
    session_id: Id,
    state: EntryState,
    request: RequestData,
    response: nullable(ResponseData),
    timestamp: Timestamp,
    modified: Type.Boolean(),
    trace: Type.Array(RuleTrace, { description: "Applied rules, in order" }),
    original_request: nullable(RequestData, { description: "As the client sent it; null if no rule changed it" }),
    original_response: nullable(ResponseData, { description: "As it was received; null if no rule changed it" }),
    notes: nullable(Type.String()),
    request_size: Type.Integer({ description: "Bytes of header fields and body" }),
    response_size: nullable(Type.Integer()),
    is_passthrough: Type.Boolean({ description: "A tunnel: bytes are counted, not read" }),
    script_intercepted: Type.Boolean(),
    client_addr: nullable(Type.String(), {
      description: "`address:port`; null for requests sent by Weir itself, such as replays",
    }),
    server_addr: nullable(Type.String()),
    device_id: nullable(Type.String()),
    resource_type: ResourceType,
    timings: Timings,
    failure: nullable(Failure),
    tls: nullable(TlsInfo),
    source: oneOf(["upstream", "slice", "import"], { description: "Origin of the response: `slice` is Weir itself" }),
    connection_id: nullable(Type.Integer({ description: "Number of the client connection; null if there is none" })),
  },
  { $id: "TrafficEntry" },
);

export type TrafficEntry = Static<typeof TrafficEntry>;

/** One row of a traffic list: no fields, no bodies. */
export const TrafficSnapshot = strictObject(
  {
    id: Id,
    seq: Type.Integer(),
    session_id: Id,
    state: EntryState,
    method: Type.String(),
    url: Type.String(),
    scheme: Type.String(),
    host: Type.String(),
    path: Type.String(),
    status_code: nullable(Type.Integer()),
    status_message: nullable(Type.String()),
    content_type: nullable(Type.String()),
    response_content_type: nullable(Type.String()),
    resource_type: ResourceType,
    duration_ms: nullable(Type.Number()),
    ttfb_ms: nullable(Type.Number()),
    request_size: Type.Integer(),
    response_size: nullable(Type.Integer()),
    timestamp: Timestamp,
    modified: Type.Boolean(),
    applied: Type.Array(RuleKind, { description: "Kinds of the applied rules" }),
    has_request_body: Type.Boolean(),
    has_response_body: Type.Boolean(),
    is_passthrough: Type.Boolean(),
    http_version: nullable(Type.String()),
    script_intercepted: Type.Boolean(),
    device_id: nullable(Type.String()),
    client_addr: nullable(Type.String(), {
      description: "`address:port`; null for requests sent by Weir itself, such as replays",
    }),
    server_addr: nullable(Type.String()),
    failure_code: nullable(Type.String()),
    source: oneOf(["upstream", "slice", "import"]),
    has_note: Type.Boolean(),
    timings: Timings,
  },
  { $id: "TrafficSnapshot" },
);

export type TrafficSnapshot = Static<typeof TrafficSnapshot>;
