import { readJson } from "@headworks/json";
import { isUtf8 } from "node:buffer";
import type { WsConnection, WsMessage, WsPayload } from "@headworks/capture-contract";
import { closeText } from "@headworks/websocket";
import { fieldPairs, joinedFields } from "#exchange/shown-message.ts";
import type { StoredFrame, StreamRow } from "#storage/streams/stream-store.ts";

/** Larger payloads are not parsed as JSON. */
const JSON_BYTES = 262_144;
/** Larger payloads are not listed byte by byte, only in base64. */
const LISTED_BYTES = 16_384;

/** A payload in API form; `bytes` may be its beginning. */
export function shownPayload(bytes: Uint8Array, sizeBytes: number, type: string): WsPayload {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isCut = bytes.length < sizeBytes;
  if (type !== "close" && isText(buffer, isCut, type)) {
    const text = buffer.toString("utf8");
    const json = isCut || bytes.length > JSON_BYTES ? undefined : jsonOf(text);
    return { text, ...(json !== undefined && { json }), size: sizeBytes };
  }
  return {
    ...(type === "close" && { text: closeText(buffer) }),
    ...(bytes.length <= LISTED_BYTES && { raw: Array.from(bytes) }),
    raw_base64: buffer.toString("base64"),
    size: sizeBytes,
  };
}

/** A text may be cut inside a character; any other invalid UTF-8 is binary. */
function isText(bytes: Buffer, isCut: boolean, type: string): boolean {
  if (type === "binary" || (type !== "text" && bytes.includes(0))) return false;
  for (let less = 0; less <= (isCut ? 3 : 0); less += 1) {
    if (isUtf8(bytes.subarray(0, Math.max(0, bytes.length - less)))) return true;
  }
  return false;
}

function jsonOf(text: string): unknown {
  const first = text.trimStart()[0];
  if (first !== "{" && first !== "[") return undefined;
  try {
    return readJson(text);
  } catch {
    return undefined;
  }
}

/** `joined` is the payload of the whole fragmented message that this frame ends. */
export function shownMessage(frame: StoredFrame, joined: WsPayload | undefined): WsMessage {
  const { streamId, ordinal, payload, attributes, original, mask } = frame;
  const fragments = attributes?.["fragments"];
  return {
    id: `${streamId}-${ordinal}`,
    connection_id: streamId,
    ordinal,
    direction: frame.direction,
    message_type: frame.type as WsMessage["message_type"],
    payload: shownPayload(payload, frame.sizeBytes, frame.type),
    timestamp: new Date(frame.atMs).toISOString(),
    opcode: frame.opcode,
    is_final: frame.isFinal,
    ...(mask !== null && { mask }),
    compressed: frame.isCompressed,
    truncated: payload.length < frame.sizeBytes,
    wire_size: frame.wireBytes,
    ...(fragments !== undefined && { fragments: Number(fragments) }),
    ...(joined !== undefined && { joined }),
    effect: frame.effect,
    ...(original !== null && { original: shownPayload(original, original.length, frame.type) }),
    ...(attributes?.["problem"] !== undefined && { problem: attributes["problem"] }),
  };
}

export function shownConnection(row: StreamRow, canSend: boolean): WsConnection {
  const responseFields = row.responseFields ?? [];
  return {
    id: row.id,
    session_id: row.sessionId,
    url: row.url,
    host: row.host,
    path: row.path,
    state: row.state,
    request_headers: joinedFields([...row.requestFields]),
    request_headers_list: fieldPairs([...row.requestFields]),
    response_headers: joinedFields([...responseFields]),
    response_headers_list: fieldPairs([...responseFields]),
    subprotocol: row.subprotocol,
    extensions: row.attributes["extensions"] ?? null,
    created_at: new Date(row.createdMs).toISOString(),
    closed_at: row.closedMs === null ? null : new Date(row.closedMs).toISOString(),
    close_code: row.closeCode,
    close_reason: row.closeReason,
    problem: row.attributes["problem"] ?? null,
    messages_sent: row.framesSent,
    messages_received: row.framesReceived,
    messages_not_stored: row.framesNotStored,
    bytes_sent: row.bytesSent,
    bytes_received: row.bytesReceived,
    can_send: canSend,
  };
}
