import { setImmediate as nextTurn } from "node:timers/promises";
import type { GrpcDecoded, GrpcFrame } from "@headworks/capture-contract";
import { readJson } from "@headworks/json";
import { readTrailerMessage } from "@headworks/grpc-framing";
import { decodeMessage, walkFields } from "@headworks/protobuf";
import type { MessageType, Schema } from "@headworks/protobuf";
import type { StoredFrame, StreamRow } from "#storage/streams/stream-store.ts";
import type { SchemaBook } from "./schema-book.ts";
import { metadataOf } from "./shown-call.ts";

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
