import { defineOperations, nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { COUNTED, EntryIdParams, Id, IdParams, Timestamp, named } from "./primitives.ts";

export const GRPC_CALL_TYPES = ["unary", "serverstream", "clientstream", "bidistream"] as const;
export const GRPC_DIRECTIONS = ["request", "response"] as const;

const Metadata = Type.Record(Type.String(), Type.String(), {
  description: "Fields by lower-case name; duplicates joined by a comma",
});

/** A client's connection, as far as calls to one server run over it. */
export const GrpcConnection = strictObject(
  {
    id: Type.String(),
    client_addr: nullable(Type.String()),
    server_addr: nullable(Type.String()),
    host: Type.String(),
    active_streams: Type.Integer(),
    total_streams: Type.Integer(),
    created_at: Timestamp,
    last_active_at: Timestamp,
    state: oneOf(["active", "closing", "closed"], {
      description: "`active` while it carries a call, `closing` if no further calls will be accepted (GOAWAY)",
    }),
  },
  { $id: "GrpcConnection" },
);
export type GrpcConnection = Static<typeof GrpcConnection>;

/** One call. */
export const GrpcStream = strictObject(
  {
    id: Type.String({ description: "Id of its traffic entry" }),
    connection_id: Type.String(),
    session_id: Id,
    url: Type.String(),
    service: Type.String({ description: "With its package; empty if the path contains none" }),
    method: Type.String(),
    path: nullable(Type.String()),
    protocol: oneOf(["grpc", "grpc-web", "grpc-web-text"]),
    message_type: oneOf([...GRPC_CALL_TYPES], {
      description: "From the schema if it has the method; otherwise from the messages so far",
    }),
    compression: Type.String({
      description: "`none`, `gzip`, `deflate`, `snappy` or another name as announced",
    }),
    request_type: nullable(Type.String({ description: "Message type; null if no schema has the method" })),
    response_type: nullable(Type.String()),
    schema_id: nullable(Type.String()),
    request_metadata: Metadata,
    response_metadata: Metadata,
    response_trailers: Metadata,
    frames_sent: Type.Integer({ description: "Messages from the client" }),
    frames_received: Type.Integer({ description: "Messages from the server, without trailers" }),
    bytes_sent: Type.Integer({ description: "Bytes of messages, uncompressed" }),
    bytes_received: Type.Integer(),
    state: oneOf(["open", "halfclosedlocal", "halfclosedremote", "closed"], {
      description: "`halfclosedlocal`: the client has sent everything",
    }),
    created_at: Timestamp,
    closed_at: nullable(Timestamp),
    deadline_ms: nullable(Type.Number({ description: "Timeout that the client set for the call" })),
    status_code: nullable(
      Type.Integer({ description: "Null while the call is in progress, and if it ended without a status" }),
    ),
    status_name: nullable(Type.String()),
    status_message: Type.String(),
    status_details: Type.Array(Type.Unknown(), {
      description: "Details of the error, decoded if their type is known",
    }),
    failure: nullable(Type.String({ description: "Why it ended without a status: cancelled, reset, no connection" })),
    issues: Type.Array(Type.String(), { description: "Violations of gRPC in its response or bodies" }),
  },
  { $id: "GrpcStream" },
);
export type GrpcStream = Static<typeof GrpcStream>;

const GrpcField = strictObject({
  number: Type.Integer(),
  wire_type: Type.Integer(),
  name: nullable(Type.String()),
  value: strictObject({
    type: oneOf(["varint", "fixed64", "fixed32", "string", "bytes", "lengthdelimited", "nested", "group"]),
    value: Type.Unknown({ description: "Numbers as text, bytes in base64, messages as a list of such fields" }),
    packed: Type.Optional(Type.Array(Type.String(), { description: "Of `lengthdelimited`: its varints" })),
  }),
});

/** A message as its fields and, where a schema knows its type, as JSON. */
export const GrpcDecoded = strictObject(
  {
    message_type: nullable(Type.String()),
    fields: Type.Array(GrpcField, { description: "As on the wire; the name is null if no schema has the number" }),
    json: Type.Unknown({ description: "In the JSON form of protocol buffers; null without a schema" }),
    unknown_fields: Type.Array(
      strictObject({ path: Type.String(), number: Type.Integer(), wire_type: Type.Integer() }),
      {
        description: "Parts of the message that are missing in `json`",
      },
    ),
    issues: Type.Array(Type.String()),
  },
  { $id: "GrpcDecoded" },
);
export type GrpcDecoded = Static<typeof GrpcDecoded>;

/** One message, or the trailers of a call. */
export const GrpcFrame = strictObject(
  {
    id: Type.String({ description: "`<stream>:<ordinal>`" }),
    ordinal: Type.Integer({ description: "Number in its call, from 1 on" }),
    stream_id: Type.String(),
    connection_id: Type.String(),
    service: Type.String(),
    method: Type.String(),
    direction: oneOf([...GRPC_DIRECTIONS]),
    compressed: Type.Boolean({ description: "Compressed on the wire; `data` is not" }),
    size: Type.Integer({ description: "Bytes, uncompressed" }),
    wire_size: Type.Integer({ description: "Bytes as received, with the prefix" }),
    stored_size: Type.Integer(),
    data: Type.String({ description: "Base64 of its first 64 KiB" }),
    truncated: Type.Boolean({ description: "`data` is incomplete" }),
    decoded: nullable(GrpcDecoded),
    trailers: nullable(Metadata),
    timestamp: Timestamp,
    is_trailer: Type.Boolean(),
    issues: Type.Array(Type.String()),
  },
  { $id: "GrpcFrame" },
);
export type GrpcFrame = Static<typeof GrpcFrame>;

/** A message in one line: JSON by its schema, or its fields by number without one; null for bytes that are not decoded. */
export function grpcFrameLine({
  trailers,
  decoded,
  issues,
}: Pick<GrpcFrame, "trailers" | "decoded" | "issues">): string | null {
  if (trailers !== null) return JSON.stringify(trailers);
  if (issues[0] !== undefined) return issues[0];
  return decoded === null ? null : JSON.stringify(decoded.json ?? fieldsByNumber(decoded.fields));
}

function fieldsByNumber(fields: GrpcDecoded["fields"]): unknown[] {
  return fields.map(({ number, value: { type, value } }) => ({
    [number]: type === "nested" || type === "group" ? fieldsByNumber(value as GrpcDecoded["fields"]) : value,
  }));
}

export const GrpcStats = strictObject(
  {
    connections: Type.Integer(),
    active_streams: Type.Integer(),
    total_streams: Type.Integer(),
    total_frames: Type.Integer(),
    total_bytes: Type.Integer({ description: "Bytes of messages and trailers, uncompressed" }),
    frames_not_stored: Type.Integer(),
    by_status: Type.Record(Type.String(), Type.Integer(), { description: "Calls by status code" }),
    by_method: Type.Record(Type.String(), Type.Integer(), { description: "Calls by path" }),
  },
  { $id: "GrpcStats" },
);
export type GrpcStats = Static<typeof GrpcStats>;

const GrpcMethod = strictObject({
  name: Type.String(),
  path: Type.String(),
  request_type: Type.String(),
  response_type: Type.String(),
  message_type: oneOf([...GRPC_CALL_TYPES]),
});

/** Types that messages are decoded with. */
export const GrpcSchema = strictObject(
  {
    id: Id,
    name: Type.String(),
    source: oneOf(["proto", "descriptor_set", "reflection"]),
    files: Type.Array(Type.String()),
    services: Type.Array(strictObject({ name: Type.String(), methods: Type.Array(GrpcMethod) })),
    messages: Type.Integer({ description: "Number of message types, without well-known ones" }),
    issues: Type.Array(Type.String(), { description: "Declarations that could not be read" }),
    created_at: Timestamp,
  },
  { $id: "GrpcSchema" },
);
export type GrpcSchema = Static<typeof GrpcSchema>;

const schemaFile = strictObject({
  name: Type.String({
    minLength: 1,
    maxLength: 1024,
    description: "Path by which other files import it: `shop/v1/orders.proto`",
  }),
  text: Type.Optional(Type.String({ description: "The file" })),
  base64: Type.Optional(Type.String({ description: "The same in base64" })),
});

/** Body of an upload: .proto files that import each other, or one descriptor set. */
export const NewGrpcSchema = strictObject({
  name: Type.Optional(named("Name of the schema. Default: the name of its first file")),
  files: Type.Optional(Type.Array(schemaFile, { minItems: 1, maxItems: 500, description: ".proto files" })),
  descriptor_set: Type.Optional(
    Type.String({
      minLength: 1,
      description: "Base64 of a descriptor set from `protoc --descriptor_set_out --include_imports`",
    }),
  ),
});
export type NewGrpcSchema = Static<typeof NewGrpcSchema>;

export const ReflectGrpcSchema = strictObject({
  url: Type.String({
    minLength: 1,
    maxLength: 2048,
    description: "`https://host:port`, or `http://host:port` for a server without TLS",
  }),
  name: Type.Optional(named("Name of the schema. Default: the server's name")),
  metadata: Type.Optional(
    Type.Record(Type.String({ maxLength: 255 }), Type.String({ maxLength: 8192 }), {
      description: "Header fields to send, such as `authorization`",
    }),
  ),
});
export type ReflectGrpcSchema = Static<typeof ReflectGrpcSchema>;

const limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Maximum number of items" }),
);
const offset = Type.Optional(
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0, description: "Number of items to skip" }),
);
const text = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 1024, description }));

const callFilters = {
  service: text("Service name, optionally with its package or the end of it: `Orders`, `v1.Orders`"),
  method: text("Name of the method"),
  path: text("Part of the path, case-insensitive"),
  status_code: text("A number, or a name such as `NOT_FOUND`"),
  connection_id: text("Only calls on this connection"),
};

export const grpcOperations = defineOperations({
  listGrpcConnections: {
    method: "GET",
    path: "/grpc/connections",
    summary: "List connections that carried gRPC calls, most recently used first",
    access: "traffic:read",
    responseFields: COUNTED,
    query: strictObject({ limit, offset }),
    responses: { 200: Type.Array(GrpcConnection) },
    expose: { mcp: { name: "get_grpc_connections", readOnly: true } },
  },
  listGrpcStreams: {
    method: "GET",
    path: "/grpc/streams",
    summary: "List gRPC calls, newest first",
    access: "traffic:read",
    responseFields: COUNTED,
    query: strictObject({ ...callFilters, limit, offset }),
    responses: { 200: Type.Array(GrpcStream) },
    expose: { mcp: { name: "get_grpc_streams", readOnly: true } },
  },
  getGrpcStream: {
    method: "GET",
    path: "/grpc/streams/{id}",
    summary: "One gRPC call",
    access: "traffic:read",
    params: EntryIdParams,
    responses: { 200: GrpcStream },
  },
  listGrpcFrames: {
    method: "GET",
    path: "/grpc/frames",
    summary: "List messages and trailers of gRPC calls, newest first",
    description: "Messages are decoded with the current schemas, whenever they were recorded.",
    access: "traffic:read",
    responseFields: COUNTED,
    query: strictObject({
      ...callFilters,
      stream_id: text("Only of this call"),
      direction: Type.Optional(oneOf([...GRPC_DIRECTIONS])),
      search: Type.Optional(Type.String({ maxLength: 4096, description: "Text in messages, case-insensitive" })),
      order: Type.Optional(oneOf(["asc", "desc"], { default: "desc", description: "`asc`: oldest first" })),
      limit,
      offset,
    }),
    responses: { 200: Type.Array(GrpcFrame) },
    expose: { mcp: { name: "get_grpc_frames", readOnly: true } },
  },
  getGrpcStats: {
    method: "GET",
    path: "/grpc/stats",
    summary: "Totals of gRPC calls, by status and by method",
    access: "traffic:read",
    responses: { 200: GrpcStats },
    expose: { mcp: { name: "get_grpc_stats", readOnly: true } },
  },
  clearGrpc: {
    method: "POST",
    path: "/grpc/clear",
    summary: "Delete all gRPC messages and completed calls; their traffic entries are kept",
    access: "traffic:delete",
    responses: { 204: null },
    expose: { mcp: { name: "clear_grpc", readOnly: false } },
  },
  listGrpcSchemas: {
    method: "GET",
    path: "/grpc/schemas",
    summary: "List the schemas used to decode messages, newest first",
    description: "If several have a method, the newest is used.",
    access: "traffic:read",
    responseFields: COUNTED,
    responses: { 200: Type.Array(GrpcSchema) },
    // `weir grpc schemas list`
    expose: { cli: false, mcp: { name: "list_grpc_schemas", readOnly: true } },
  },
  addGrpcSchema: {
    method: "POST",
    path: "/grpc/schemas",
    summary: "Add .proto files or a descriptor set",
    description:
      "Takes `files` or `descriptor_set`. Imports are resolved among these files and the well-known ones only.",
    access: "config:write",
    body: NewGrpcSchema,
    responses: { 201: GrpcSchema },
    // `weir grpc schemas add` takes files and folders.
    expose: { cli: false, mcp: { name: "add_grpc_schema", readOnly: false } },
  },
  reflectGrpcSchema: {
    method: "POST",
    path: "/grpc/schemas/reflect",
    summary: "Get a server's schema by server reflection",
    description:
      "Uses v1, or v1alpha if the server has only that. The requests are treated like client traffic: certificates are verified, the upstream proxy is used, rules apply, and they are recorded.",
    access: "config:write",
    body: ReflectGrpcSchema,
    responses: { 201: GrpcSchema },
    // `weir grpc schemas reflect`
    expose: { cli: false },
  },
  deleteGrpcSchema: {
    method: "DELETE",
    path: "/grpc/schemas/{id}",
    summary: "Remove a schema",
    access: "config:write",
    params: IdParams,
    responses: { 204: null },
    // `weir grpc schemas remove`
    expose: { cli: false },
  },
});
