import { setImmediate as nextTurn } from "node:timers/promises";
import type { GrpcConnection, GrpcDecoded, GrpcFrame, GrpcStream } from "@headworks/capture-contract";
import { parseTimeoutMs, readTrailerMessage } from "@headworks/grpc-framing";
import { GRPC_STATUS_NAMES } from "@headworks/http-fields";
import { readJson } from "@headworks/json";
import { decodeMessage, type MessageType, type MethodType, type Schema, walkFields } from "@headworks/protobuf";
import type { StoredFrame, StreamGroup, StreamRow } from "#storage/streams/stream-store.ts";
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
function metadataOf(fields: readonly string[]): Record<string, string> {
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

/** Maximum bytes of each message that are returned and decoded. */
export const SHOWN_BYTES = 65_536;
/** Maximum bytes decoded per response; further messages are returned undecoded. */
const MAX_DECODED_BYTES = 4_194_304;
/** Yields to other work after this time. */
const WORK_MS = 10;
const DECODE_LIMITS = { maxDepth: 100, maxValues: 20_000 };
const WALK_LIMITS = { maxDepth: 32, maxFields: 2000, maxValueBytes: 131_072 };

const STOPS: Readonly<Record<string, string>> = {
  damaged: "cannot be decompressed: its bytes are not what they claim to be",
  unsupported: "is compressed in a way that is not known here",
  limit: "is larger than what is kept of a message",
  behind: "came faster than messages are decompressed",
};

/** The wire form of frames, decoded with the current schemas. */
export async function showFrames(
  frames: readonly StoredFrame[],
  calls: ReadonlyMap<string, StreamRow>,
  book: SchemaBook,
): Promise<GrpcFrame[]> {
  const shown: GrpcFrame[] = [];
  let leftBytes = MAX_DECODED_BYTES;
  let startedMs = performance.now();
  for (const frame of frames) {
    const attributes = calls.get(frame.streamId)?.attributes ?? {};
    const decodes = frame.type === "message" && frame.payload.length <= leftBytes;
    if (decodes) leftBytes -= frame.payload.length;
    shown.push(showFrame(frame, attributes, book, decodes));
    if (performance.now() - startedMs < WORK_MS) continue;
    await nextTurn();
    startedMs = performance.now();
  }
  return shown;
}

function showFrame(
  frame: StoredFrame,
  attributes: Readonly<Record<string, string>>,
  book: SchemaBook,
  decodes: boolean,
): GrpcFrame {
  const { streamId, ordinal, direction, payload, storedBytes, sizeBytes, wireBytes, isCompressed } = frame;
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  const isTrailer = frame.type === "trailer";
  const stop = frame.attributes?.["stop"];
  const issues = stop === undefined ? [] : [STOPS[stop] ?? stop];
  if (!frame.isFinal) issues.push("ended before it was complete");
  const isReadable = stop === undefined || stop === "limit";
  return {
    id: `${streamId}:${ordinal}`,
    ordinal,
    stream_id: streamId,
    connection_id: attributes["connection"] ?? "",
    service: attributes["service"] ?? "",
    method: attributes["method"] ?? "",
    direction: direction === "send" ? "request" : "response",
    compressed: isCompressed,
    size: sizeBytes,
    wire_size: wireBytes,
    stored_size: storedBytes,
    data: bytes.toString("base64"),
    truncated: bytes.length < sizeBytes,
    decoded: decodes && isReadable ? decoded(bytes, direction, attributes, book) : null,
    trailers: isTrailer ? metadataOf(readTrailerMessage(bytes)) : null,
    timestamp: new Date(frame.atMs).toISOString(),
    is_trailer: isTrailer,
    issues,
  };
}

function decoded(
  bytes: Buffer,
  direction: StoredFrame["direction"],
  attributes: Readonly<Record<string, string>>,
  book: SchemaBook,
): GrpcDecoded | null {
  const format = attributes["format"];
  if (format !== undefined) return format === "json" ? decodedJson(bytes) : null;
  const known = book.find(attributes["service"] ?? "", attributes["method"] ?? "");
  if (known === undefined) return decodedWith(bytes);
  return decodedWith(bytes, known.schema, direction === "send" ? known.method.input : known.method.output);
}

function decodedWith(bytes: Buffer, schema?: Schema, type?: MessageType): GrpcDecoded {
  const { fields, stop } = walkFields(bytes, type, WALK_LIMITS);
  const issues: string[] = [];
  if (stop?.reason === "malformed") issues.push(`byte ${stop.offset} begins no field`);
  if (stop?.reason === "limit") issues.push("has more than is shown");
  if (schema === undefined || type === undefined) {
    return { message_type: null, fields: fieldsOf(fields), json: null, unknown_fields: [], issues };
  }
  const message = decodeMessage(schema, type, bytes, DECODE_LIMITS);
  return {
    message_type: type.name,
    fields: fieldsOf(fields),
    json: message.json,
    unknown_fields: message.unknown.map(({ path, number, wireType }) => ({ path, number, wire_type: wireType })),
    issues: [...issues, ...message.issues],
  };
}

function fieldsOf(fields: ReturnType<typeof walkFields>["fields"]): GrpcDecoded["fields"] {
  return fields.map(({ value, ...field }) => ({
    ...field,
    value:
      value.type === "lengthdelimited"
        ? { ...value, packed: [...value.packed] }
        : { type: value.type, value: value.value },
  }));
}

function decodedJson(bytes: Buffer): GrpcDecoded | null {
  const empty = { message_type: null, fields: [], unknown_fields: [] };
  try {
    return { ...empty, json: readJson(bytes.toString("utf8")), issues: [] };
  } catch {
    return { ...empty, json: null, issues: ["is no JSON"] };
  }
}
