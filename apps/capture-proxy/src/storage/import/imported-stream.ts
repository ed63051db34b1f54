import { CheckedMembers, MemberError } from "./checked-members.ts";
import type { HarWebSocketMessage } from "@headworks/har";
import { hostPortText } from "@headworks/host-patterns";
import { clientOf, type ImportedEntry } from "./imported-entry.ts";
import {
  FLAG_COMPRESSED,
  FLAG_FINAL,
  FRAME_DIRECTIONS,
  FRAME_EFFECTS,
  FRAME_TYPES,
  STATE_CLOSED,
  STREAM_KINDS,
  STREAM_STATES,
} from "../streams/stream-store.ts";
import type { FrameTuple, StreamOpening, StreamProgress } from "../streams/stream-store.ts";

const MAX_TEXT_LENGTH = 65_536;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/u;

/** Without number and session. */
export interface ImportedStream {
  readonly opening: Omit<StreamOpening, "number" | "session">;
  readonly progress: Omit<StreamProgress, "number">;
}

export interface ImportedFrame {
  /** Index of its stream. */
  readonly stream: number;
  readonly tuple: FrameTuple;
  readonly payload: Buffer;
  readonly original: Buffer | undefined;
}

/** Throws {@link MemberError}. */
export function importedStream(value: unknown): ImportedStream {
  const stream = new CheckedMembers(value, "");
  const text = (name: string): string => stream.optionalText(name, MAX_TEXT_LENGTH) ?? "";
  const whole = (name: string): number => stream.whole(name) ?? 0;
  const kind = stream.oneOf("kind", STREAM_KINDS) ?? stream.refuse("kind", "is missing");
  const responseFields = stream.has("response_fields") ? JSON.stringify(texts(stream, "response_fields")) : null;
  const createdMs = whole("created_ms");
  return {
    opening: {
      id: stream.text("entry"),
      kind: STREAM_KINDS.indexOf(kind),
      method: text("method"),
      url: text("url"),
      host: text("host"),
      path: text("path"),
      clientAddress: clientOf(stream.optionalText("client_addr", 255), null).clientAddress,
      createdMs,
      requestFields: JSON.stringify(texts(stream, "request_fields")),
    },
    progress: {
      // Imported streams are closed.
      state: STREAM_STATES.length - 1,
      serverAddress: stream.optionalText("server_addr", 255),
      responseFields,
      subprotocol: stream.optionalText("subprotocol", MAX_TEXT_LENGTH),
      closeCode: stream.whole("close_code"),
      closeReason: stream.optionalText("close_reason", MAX_TEXT_LENGTH),
      attributes: JSON.stringify(attributesOf(stream) ?? {}),
      closedMs: stream.whole("closed_ms") ?? whole("last_ms"),
      lastMs: Math.max(createdMs, whole("last_ms")),
      framesSent: whole("frames_sent"),
      framesReceived: whole("frames_received"),
      bytesSent: whole("bytes_sent"),
      bytesReceived: whole("bytes_received"),
      framesNotStored: whole("frames_not_stored"),
      lastOrdinal: whole("last_ordinal"),
    },
  };
}

/** Throws {@link MemberError}. */
export function importedFrame(value: unknown): ImportedFrame {
  const frame = new CheckedMembers(value, "");
  const stream = frame.whole("stream") ?? frame.refuse("stream", "is missing");
  const ordinal = frame.whole("ordinal") ?? frame.refuse("ordinal", "is missing");
  const direction = frame.oneOf("direction", FRAME_DIRECTIONS) ?? frame.refuse("direction", "is missing");
  const type = frame.oneOf("type", FRAME_TYPES) ?? frame.refuse("type", "is missing");
  const effect = frame.oneOf("effect", FRAME_EFFECTS);
  const payload = bytesOf(frame, "data") ?? frame.refuse("data", "is missing");
  const original = bytesOf(frame, "original");
  const attributes = attributesOf(frame);
  return {
    stream,
    tuple: [
      0,
      ordinal,
      FRAME_DIRECTIONS.indexOf(direction),
      FRAME_TYPES.indexOf(type),
      Math.min(frame.whole("opcode") ?? 0, 15),
      (frame.boolean("final") ? FLAG_FINAL : 0) | (frame.boolean("compressed") ? FLAG_COMPRESSED : 0),
      effect === null ? 0 : FRAME_EFFECTS.indexOf(effect) + 1,
      frame.whole("at_ms") ?? 0,
      Math.max(frame.whole("size") ?? 0, payload.length),
      frame.whole("wire_size") ?? 0,
      frame.whole("mask"),
      payload.length,
      original?.length ?? -1,
      attributes === null ? null : JSON.stringify(attributes),
    ],
    payload,
    original: original ?? undefined,
  };
}

const TYPE_OF_OPCODE: Readonly<Record<number, (typeof FRAME_TYPES)[number]>> = {
  1: "text",
  8: "close",
  9: "ping",
  10: "pong",
};

/** The WebSocket messages of a HAR entry as a stream. */
export function streamOfHar(
  entry: ImportedEntry,
  messages: readonly HarWebSocketMessage[],
): { readonly stream: ImportedStream; readonly frames: readonly Omit<ImportedFrame, "stream">[] } {
  const { target, request, response } = entry;
  const sums = { send: { frames: 0, bytes: 0 }, receive: { frames: 0, bytes: 0 } };
  const frames = messages.map(({ from, atMs, opcode, data }, index) => {
    const direction = from === "client" ? "send" : "receive";
    sums[direction].frames += 1;
    sums[direction].bytes += data.length;
    const type = FRAME_TYPES.indexOf(TYPE_OF_OPCODE[opcode] ?? "binary");
    const tuple: FrameTuple = [
      0,
      index + 1,
      FRAME_DIRECTIONS.indexOf(direction),
      type,
      opcode,
      FLAG_FINAL,
      0,
      Math.max(0, Math.round(atMs)),
      data.length,
      data.length,
      null,
      data.length,
      -1,
      null,
    ];
    return { tuple, payload: Buffer.from(data), original: undefined };
  });
  const lastMs = frames.at(-1)?.tuple[7] ?? entry.startedMs;
  const standard = target.scheme === "ws" || target.scheme === "http" ? 80 : 443;
  return {
    stream: {
      opening: {
        id: entry.id,
        kind: STREAM_KINDS.indexOf("websocket"),
        method: entry.method,
        url: `${target.scheme}://${hostPortText(target.host, target.port, standard)}${target.path}`,
        host: target.host,
        path: target.path,
        clientAddress: entry.clientAddress,
        createdMs: entry.startedMs,
        requestFields: JSON.stringify(request.fields),
      },
      progress: {
        state: STATE_CLOSED,
        serverAddress: entry.serverAddress,
        responseFields: response === undefined ? null : JSON.stringify(response.fields),
        subprotocol: null,
        closeCode: null,
        closeReason: null,
        attributes: "{}",
        closedMs: lastMs,
        lastMs,
        framesSent: sums.send.frames,
        framesReceived: sums.receive.frames,
        bytesSent: sums.send.bytes,
        bytesReceived: sums.receive.bytes,
        framesNotStored: 0,
        lastOrdinal: frames.length,
      },
    },
    frames,
  };
}

function texts(members: CheckedMembers, name: string): string[] {
  const list = members.array(name) ?? [];
  return list.map((text) => (typeof text === "string" ? text : members.refuse(name, "is not a list of texts")));
}

function attributesOf(members: CheckedMembers): Readonly<Record<string, string>> | null {
  const value = members.raw("attributes");
  if (value === null) return null;
  if (typeof value !== "object" || Array.isArray(value)) throw new MemberError("`attributes` is not an object");
  const pairs = Object.entries<unknown>({ ...value }).map(([name, text]): [string, string] => {
    if (typeof text !== "string") throw new MemberError(`\`attributes.${name}\` is not text`);
    return [name, text];
  });
  return Object.fromEntries(pairs);
}

function bytesOf(members: CheckedMembers, name: string): Buffer | null {
  const text = members.optionalText(name);
  if (text === null) return null;
  return BASE64.test(text) ? Buffer.from(text, "base64") : members.refuse(name, "is not base64");
}
