import { nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import { resourceTypes } from "@headworks/http-fields";
import type { Static } from "typebox";
import { Failure, RequestData, ResponseData, RuleKind, RuleTrace, Timings, TlsInfo } from "./message.ts";
import { Id, Timestamp } from "./primitives.ts";

export const EntryState = oneOf(["pending", "complete", "failed", "closed"], {
  description:
    "`closed`: the client disconnected during the response, as browsers end event streams; not an error, although `failure` is set",
});
export type EntryState = Static<typeof EntryState>;

/** What an exchange is about, or that it is a tunnel; for the query field `type:` and the type pills. */
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
