import type { GrpcConnection, GrpcStream } from "@headworks/capture-contract";
import { parseTimeoutMs } from "@headworks/grpc-framing";
import { GRPC_STATUS_NAMES } from "@headworks/http-fields";
import { decodeMessage } from "@headworks/protobuf";
import type { MethodType } from "@headworks/protobuf";
import type { StreamGroup, StreamRow } from "#storage/streams/stream-store.ts";
import type { SchemaBook } from "./schema-book.ts";

/** The wire form of a call, using the current schemas. */
export function showCall(row: StreamRow, book: SchemaBook): GrpcStream {
  const { attributes } = row;
  const service = attributes["service"] ?? "";
  const method = attributes["method"] ?? "";
  const known = book.find(service, method);
  const received = row.framesReceived - (attributes["trailers"] === undefined ? 0 : 1);
  const code = row.closeCode;
  const timeout = row.requestFields.findIndex((text, at) => at % 2 === 0 && text.toLowerCase() === "grpc-timeout");
  return {
    id: row.id,
    connection_id: attributes["connection"] ?? "",
    session_id: row.sessionId,
    url: row.url,
    service,
    method,
    path: attributes["path"] ?? null,
    protocol: protocolOf(attributes["protocol"]),
    message_type: callType(known?.method ?? { isClientStreaming: row.framesSent > 1, isServerStreaming: received > 1 }),
    compression: compressionOf(attributes),
    request_type: known?.method.input.name ?? null,
    response_type: known?.method.output.name ?? null,
    schema_id: known?.id ?? null,
    request_metadata: metadataOf(row.requestFields),
    response_metadata: metadataOf(row.responseFields ?? []),
    response_trailers: metadataOf(listOf(attributes["trailers"])),
    frames_sent: row.framesSent,
    frames_received: Math.max(0, received),
    bytes_sent: row.bytesSent,
    bytes_received: Math.max(0, row.bytesReceived - Number(attributes["trailer_bytes"] ?? 0)),
    state: stateOf(row),
    created_at: new Date(row.createdMs).toISOString(),
    closed_at: row.closedMs === null ? null : new Date(row.closedMs).toISOString(),
    deadline_ms: timeout === -1 ? null : (parseTimeoutMs(row.requestFields[timeout + 1] ?? "") ?? null),
    status_code: code,
    status_name: code === null ? null : (GRPC_STATUS_NAMES[code] ?? null),
    status_message: row.closeReason ?? "",
    status_details: detailsOf(attributes["details"], known?.schema ?? book.wellKnown()),
    failure: attributes["failure"] ?? null,
    issues: listOf(attributes["issues"]),
  };
}

/** The wire form of a connection's calls. */
export function showConnection(group: StreamGroup): GrpcConnection {
  return {
    id: group.value,
    client_addr: group.clientAddress,
    server_addr: group.serverAddress,
    host: group.host,
    active_streams: group.openStreams,
    total_streams: group.streams,
    created_at: new Date(group.createdMs).toISOString(),
    last_active_at: new Date(group.lastMs).toISOString(),
    state: group.openStreams === 0 ? "closed" : group.closingStreams > 0 ? "closing" : "active",
  };
}

/** The kind of a method, by its streaming sides. */
export function callType(
  method: Pick<MethodType, "isClientStreaming" | "isServerStreaming">,
): GrpcStream["message_type"] {
  if (method.isClientStreaming) return method.isServerStreaming ? "bidistream" : "clientstream";
  return method.isServerStreaming ? "serverstream" : "unary";
}

/** Fields by lower-case name; safe for names such as `__proto__`. */
export function metadataOf(fields: readonly string[]): Record<string, string> {
  const metadata = new Map<string, string>();
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = (fields[at] ?? "").toLowerCase();
    const value = fields[at + 1] ?? "";
    const before = metadata.get(name);
    metadata.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(metadata);
}

function protocolOf(text: string | undefined): GrpcStream["protocol"] {
  return text === "grpc-web" || text === "grpc-web-text" ? text : "grpc";
}

function compressionOf(attributes: Readonly<Record<string, string>>): string {
  for (const name of ["request_encoding", "response_encoding"]) {
    const encoding = attributes[name]?.trim().toLowerCase();
    if (encoding !== undefined && encoding !== "" && encoding !== "identity") return encoding;
  }
  return "none";
}

function stateOf({ state, attributes }: StreamRow): GrpcStream["state"] {
  if (state === "closed") return "closed";
  if (attributes["response_ended"] === "1") return "halfclosedremote";
  return attributes["request_ended"] === "1" ? "halfclosedlocal" : "open";
}

function listOf(text: string | undefined): string[] {
  return text === undefined ? [] : (JSON.parse(text) as string[]);
}

function detailsOf(base64: string | undefined, schema: ReturnType<SchemaBook["wellKnown"]>): unknown[] {
  const type = schema.messages.get("google.rpc.Status");
  if (base64 === undefined || type === undefined) return [];
  const { json } = decodeMessage(schema, type, Buffer.from(base64, "base64"));
  const details = (json as { readonly details?: unknown } | null)?.details;
  return Array.isArray(details) ? details : [];
}
