import { defineOperations, nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { COUNTED, EntryIdParams, Id, IdParams, Timestamp, named } from "./primitives.ts";

export const GRPC_CALL_TYPES = ["unary", "serverstream", "clientstream", "bidistream"] as const;
export const GRPC_DIRECTIONS = ["request", "response"] as const;

const Metadata = Type.Record(Type.String(), Type.String(), {
  description: "Fields by lower-case name; several of one name are joined with a comma",
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
      description: "`active` while a call runs over it, `closing` when that is the last there will be (GOAWAY)",
    }),
  },
  { $id: "GrpcConnection" },
);
export type GrpcConnection = Static<typeof GrpcConnection>;

/** One call. */
export const GrpcStream = strictObject(
  {
    id: Type.String({ description: "That of its traffic entry" }),
    connection_id: Type.String(),
    session_id: Id,
    url: Type.String(),
    service: Type.String({ description: "With its package; empty where the path names none" }),
    method: Type.String(),
    path: nullable(Type.String()),
    protocol: oneOf(["grpc", "grpc-web", "grpc-web-text"]),
    message_type: oneOf([...GRPC_CALL_TYPES], {
      description: "From the schema where one knows the method; else from what was seen so far",
    }),
    compression: Type.String({
      description: "`none`, `gzip`, `deflate`, `snappy` or another name as it was announced",
    }),
    request_type: nullable(Type.String({ description: "Message type; null where no schema knows the method" })),
    response_type: nullable(Type.String()),
    schema_id: nullable(Type.String()),
    request_metadata: Metadata,
    response_metadata: Metadata,
    response_trailers: Metadata,
    frames_sent: Type.Integer({ description: "Messages of the client" }),
    frames_received: Type.Integer({ description: "Messages of the server; trailers are not counted" }),
    bytes_sent: Type.Integer({ description: "Of messages, uncompressed" }),
    bytes_received: Type.Integer(),
    state: oneOf(["open", "halfclosedlocal", "halfclosedremote", "closed"], {
      description: "`halfclosedlocal`: the client has sent all",
    }),
    created_at: Timestamp,
    closed_at: nullable(Timestamp),
    deadline_ms: nullable(Type.Number({ description: "Time the client gave the call" })),
    status_code: nullable(Type.Integer({ description: "null while it runs, and where it ended without a status" })),
    status_name: nullable(Type.String()),
    status_message: Type.String(),
    status_details: Type.Array(Type.Unknown(), {
      description: "Details of the error, decoded where their type is known",
    }),
    failure: nullable(Type.String({ description: "Why it ended without a status: cancelled, reset, no connection" })),
    issues: Type.Array(Type.String(), { description: "What in its answer or its bodies is no gRPC" }),
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
    value: Type.Unknown({ description: "Numbers as text, bytes in base64, messages as fields of this kind again" }),
    packed: Type.Optional(Type.Array(Type.String(), { description: "Of `lengthdelimited`: its varints" })),
  }),
});

/** A message as its fields and, where a schema knows its type, as JSON. */
export const GrpcDecoded = strictObject(
  {
    message_type: nullable(Type.String()),
    fields: Type.Array(GrpcField, { description: "As on the wire; names are null where no schema knows the number" }),
    json: Type.Unknown({ description: "By the JSON rules of protocol buffers; null without a schema" }),
    unknown_fields: Type.Array(
      strictObject({ path: Type.String(), number: Type.Integer(), wire_type: Type.Integer() }),
      {
        description: "What is on the wire and not in `json`",
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
    compressed: Type.Boolean({ description: "On the wire; `data` is not" }),
    size: Type.Integer({ description: "Bytes, uncompressed" }),
    wire_size: Type.Integer({ description: "Bytes as they came, with the prefix" }),
    stored_size: Type.Integer(),
    data: Type.String({ description: "Base64 of its first 64 KiB" }),
    truncated: Type.Boolean({ description: "`data` is not all of it" }),
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
    total_bytes: Type.Integer({ description: "Of messages and trailers, uncompressed" }),
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
    messages: Type.Integer({ description: "How many message types it has, well-known ones not counted" }),
    issues: Type.Array(Type.String(), { description: "What was declared and could not be understood" }),
    created_at: Timestamp,
  },
  { $id: "GrpcSchema" },
);
export type GrpcSchema = Static<typeof GrpcSchema>;

const schemaFile = strictObject({
  name: Type.String({ minLength: 1, maxLength: 1024, description: "As other files import it: `shop/v1/orders.proto`" }),
  text: Type.Optional(Type.String({ description: "The file" })),
  base64: Type.Optional(Type.String({ description: "Or the same in base64" })),
});

/** Body of an upload: .proto files that import each other, or one descriptor set. */
export const NewGrpcSchema = strictObject({
  name: Type.Optional(named("What it is called; without one the name of its first file")),
  files: Type.Optional(
    Type.Array(schemaFile, { minItems: 1, maxItems: 500, description: "Files in the language of protocol buffers" }),
  ),
  descriptor_set: Type.Optional(
    Type.String({ minLength: 1, description: "Base64 of what `protoc --descriptor_set_out --include_imports` wrote" }),
  ),
});
export type NewGrpcSchema = Static<typeof NewGrpcSchema>;

export const ReflectGrpcSchema = strictObject({
  url: Type.String({
    minLength: 1,
    maxLength: 2048,
    description: "`https://host:port`, or `http://host:port` for a server without TLS",
  }),
  name: Type.Optional(named("What it is called; without one the server's name")),
  metadata: Type.Optional(
    Type.Record(Type.String({ maxLength: 255 }), Type.String({ maxLength: 8192 }), {
      description: "Fields to send along, such as `authorization`",
    }),
  ),
});
export type ReflectGrpcSchema = Static<typeof ReflectGrpcSchema>;

const limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Most of one answer" }),
);
const offset = Type.Optional(
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0, description: "Left out first" }),
);
const text = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 1024, description }));

const callFilters = {
  service: text("With its package, or the end of that: `Orders`, `v1.Orders`"),
  method: text("Name of the method"),
  path: text("Part of the path, in any letter case"),
  status_code: text("A number from 0 on or a name such as `NOT_FOUND`"),
  connection_id: text("Calls over this connection"),
};

export const grpcOperations = defineOperations({
  listGrpcConnections: {
    method: "GET",
    path: "/grpc/connections",
    summary: "List connections that carried gRPC calls, the last used first",
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
    description: "Messages are decoded with the schemas there are now, whenever they were recorded.",
    access: "traffic:read",
    responseFields: COUNTED,
    query: strictObject({
      ...callFilters,
      stream_id: text("Of this call"),
      direction: Type.Optional(oneOf([...GRPC_DIRECTIONS])),
      search: Type.Optional(Type.String({ maxLength: 4096, description: "Text in messages, in any letter case" })),
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
    summary: "Sums over gRPC calls, by status and by method",
    access: "traffic:read",
    responses: { 200: GrpcStats },
    expose: { mcp: { name: "get_grpc_stats", readOnly: true } },
  },
  clearGrpc: {
    method: "POST",
    path: "/grpc/clear",
    summary: "Remove the messages of gRPC calls, and the calls that are over; their traffic entries stay",
    access: "traffic:delete",
    responses: { 204: null },
    expose: { mcp: { name: "clear_grpc", readOnly: false } },
  },
  listGrpcSchemas: {
    method: "GET",
    path: "/grpc/schemas",
    summary: "List the schemas that messages are decoded with, newest first",
    description: "Where several know a method, the newest counts.",
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
      "Give `files` or `descriptor_set`. Imports are looked for among the files given and the well-known ones; nothing is read from elsewhere.",
    access: "config:write",
    body: NewGrpcSchema,
    responses: { 201: GrpcSchema },
    // `weir grpc schemas add` takes files and folders.
    expose: { cli: false, mcp: { name: "add_grpc_schema", readOnly: false } },
  },
  reflectGrpcSchema: {
    method: "POST",
    path: "/grpc/schemas/reflect",
    summary: "Ask a server for its schema by server reflection",
    description:
      "Version v1, or v1alpha where the server has only that. The requests go the way that traffic goes: certificates are verified, the upstream proxy is used, rules apply, and they are recorded.",
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
