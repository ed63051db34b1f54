import { isUtf8 } from "node:buffer";
import type {
  AssembledChat,
  AssembledStream,
  StreamDetail,
  StreamFrame,
  StreamSummary,
  streamsOperations,
} from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ChatAssembler, type ChatResponse } from "@headworks/event-stream";
import { closeText } from "@headworks/websocket";
import { notFound } from "#api/api-error.ts";
import type { Slice, SliceHost } from "#slice.ts";
import type { StoredFrame, StreamRow, StreamStore } from "#storage/streams/stream-store.ts";
import { createStreamsObserver } from "./stream-watch.ts";

/** Streams of all kinds in the API, and the frames of server-sent events and JSON streams. */
export function createStreamsSlice(host: SliceHost): Slice<typeof streamsOperations> {
  return { name: "streams", operations: createStreamsOperations(host), observer: createStreamsObserver(host) };
}

function createStreamsOperations({
  streams,
  store,
}: Pick<SliceHost, "streams" | "store">): Handlers<typeof streamsOperations> {
  const found = async (id: string): Promise<StreamRow> => (await streams.getStream(id)) ?? notFound("stream", id);
  return {
    listStreams: async ({ query, signal }) => {
      const { kind, session_id: session = store.activeSessionId, limit = 100, offset = 0 } = query;
      const sessionId = session === "all" ? undefined : session;
      const page = await streams.listStreams({ kind, sessionId, limit, offset }, signal);
      return { status: 200, headers: countedAs(page.total), body: page.streams.map((row) => shownStream(row)) };
    },
    getStream: async ({ params }) => ({ status: 200, body: shownStreamDetail(await found(params.id)) }),
    listStreamFrames: async ({ params, query, signal }) => {
      await found(params.id);
      const { direction, type, search, after, order = "asc", preview = 4096, limit = 100, offset = 0 } = query;
      const page = await streams.listFrames(
        {
          streamId: params.id,
          direction,
          type,
          search: search === "" ? undefined : search,
          afterOrdinal: after,
          limit,
          offset,
          order,
          payloadBytes: preview,
        },
        signal,
      );
      return { status: 200, headers: countedAs(page.total), body: page.frames.map((frame) => shownFrame(frame)) };
    },
    getStreamFrameBody: async ({ params }) => {
      const bytes = await streams.frameBytes(params.id, params.ordinal);
      if (bytes === undefined) return notFound("frame", `${params.id}/${params.ordinal}`);
      const headers = {
        "content-type": "application/octet-stream",
        "content-length": String(bytes.length),
        "x-content-type-options": "nosniff",
      };
      return { status: 200, headers, body: bytes };
    },
    assembleStream: async ({ params, signal }) => {
      const row = await found(params.id);
      return { status: 200, body: await assembleStream(streams, row, signal) };
    },
  };
}

function countedAs(total: number): Readonly<Record<string, string>> {
  return { "x-total-count": String(total) };
}

function shownStream(row: StreamRow): StreamSummary {
  return {
    id: row.id,
    kind: row.kind,
    session_id: row.sessionId,
    state: row.state,
    method: row.method,
    url: row.url,
    host: row.host,
    path: row.path,
    client_addr: row.clientAddress,
    server_addr: row.serverAddress,
    subprotocol: row.subprotocol,
    close_code: row.closeCode,
    close_reason: row.closeReason,
    attributes: { ...row.attributes },
    created_at: new Date(row.createdMs).toISOString(),
    closed_at: row.closedMs === null ? null : new Date(row.closedMs).toISOString(),
    frames_sent: row.framesSent,
    frames_received: row.framesReceived,
    bytes_sent: row.bytesSent,
    bytes_received: row.bytesReceived,
    frames_stored: row.framesStored,
    frames_not_stored: row.framesNotStored,
  };
}

function shownStreamDetail(row: StreamRow): StreamDetail {
  return {
    ...shownStream(row),
    request_headers: pairsOf(row.requestFields),
    response_headers: row.responseFields === null ? null : pairsOf(row.responseFields),
  };
}

function shownFrame(frame: StoredFrame): StreamFrame {
  const isCut = frame.payload.length < frame.storedBytes || frame.storedBytes < frame.sizeBytes;
  const payload = frame.type === "close" ? shownClose(frame.payload) : shownBytes(frame.payload, isCut);
  const original = frame.original === null ? undefined : shownBytes(frame.original, true);
  return {
    stream_id: frame.streamId,
    ordinal: frame.ordinal,
    kind: frame.kind,
    direction: frame.direction,
    type: frame.type,
    opcode: frame.opcode,
    is_final: frame.isFinal,
    timestamp: new Date(frame.atMs).toISOString(),
    text: payload.text,
    base64: payload.base64,
    size: frame.sizeBytes,
    stored_size: frame.storedBytes,
    preview_size: frame.payload.length,
    wire_size: frame.wireBytes,
    compressed: frame.isCompressed,
    mask: frame.mask,
    effect: frame.effect,
    original_text: original?.text ?? null,
    original_base64: original?.base64 ?? null,
    attributes: { ...frame.attributes },
  };
}

function shownClose(bytes: Uint8Array): { readonly text: string; readonly base64: string } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { text: closeText(buffer), base64: buffer.toString("base64") };
}

/** UTF-8 as text, anything else in base64; a cut may have split a character. */
function shownBytes(
  bytes: Uint8Array,
  isCut: boolean,
): { readonly text: string | null; readonly base64: string | null } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const whole = isCut ? buffer.subarray(0, endOfCharacters(buffer)) : buffer;
  return isUtf8(whole) ? { text: whole.toString(), base64: null } : { text: null, base64: buffer.toString("base64") };
}

function endOfCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return bytes.length;
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return needed > back ? bytes.length - back : bytes.length;
    }
  }
  return bytes.length;
}

function pairsOf(fields: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let at = 0; at < fields.length; at += 2) pairs.push([fields[at] ?? "", fields[at + 1] ?? ""]);
  return pairs;
}

const PAGE_FRAMES = 500;
/** Bounds of an assembled text: frames, total bytes and bytes of one frame. */
const MAX_FRAMES = 100_000;
const MAX_BYTES = 33_554_432;
const MAX_FRAME_BYTES = 1_048_576;
const MAX_TEXT_CHARACTERS = 1_048_576;
const MAX_NAMES = 100;

/** Concatenates the text of a stream's frames, reading them page by page. */
async function assembleStream(
  store: Pick<StreamStore, "listFrames">,
  row: StreamRow,
  signal: AbortSignal,
): Promise<AssembledStream> {
  const assembly = new Assembly();
  for (let after = 0; !assembly.isFull;) {
    const { frames } = await store.listFrames(
      {
        streamId: row.id,
        direction: "receive",
        afterOrdinal: after,
        limit: PAGE_FRAMES,
        offset: 0,
        order: "asc",
        payloadBytes: MAX_FRAME_BYTES,
      },
      signal,
    );
    for (const frame of frames) assembly.add(frame);
    const last = frames.at(-1);
    if (last === undefined || frames.length < PAGE_FRAMES) break;
    after = last.ordinal;
  }
  return assembly.of(row);
}

class Assembly {
  readonly #chat = new ChatAssembler();
  readonly #texts: string[] = [];
  readonly #names = new Map<string, { name: string; count: number; bytes: number }>();
  #frames = 0;
  #bytes = 0;
  #characters = 0;
  #isCut = false;

  get isFull(): boolean {
    return this.#frames >= MAX_FRAMES || this.#bytes >= MAX_BYTES;
  }

  add(frame: StoredFrame): void {
    if (this.isFull) {
      this.#isCut = true;
      return;
    }
    this.#frames += 1;
    this.#bytes += frame.payload.length;
    const event = frame.attributes?.["event"] ?? (frame.type === "event" ? "message" : frame.type);
    this.#count(event, frame.sizeBytes);
    if (!CONTENT.has(frame.type) || frame.payload.length === 0) return;
    if (frame.payload.length < frame.sizeBytes) this.#isCut = true;
    const text = Buffer.from(frame.payload.buffer, frame.payload.byteOffset, frame.payload.byteLength).toString();
    this.#chat.add({ event, data: text });
    this.#addText(text);
  }

  of(row: StreamRow): AssembledStream {
    const response = this.#chat.response();
    const events = [...this.#names.values()].sort((left, right) => right.count - left.count);
    return {
      id: row.id,
      kind: row.kind,
      frames: this.#frames,
      text: this.#texts.join("\n"),
      truncated: this.#isCut || this.isFull || response?.isCut === true || row.framesNotStored > 0,
      events: events.slice(0, MAX_NAMES),
      chat: response === undefined ? null : shownChat(response),
    };
  }

  #addText(text: string): void {
    const room = MAX_TEXT_CHARACTERS - this.#characters;
    if (text.length > room) this.#isCut = true;
    if (room <= 0) return;
    this.#texts.push(text.slice(0, room));
    this.#characters += text.length + 1;
  }

  #count(event: string, bytes: number): void {
    const known = this.#names.get(event);
    if (known !== undefined) {
      known.count += 1;
      known.bytes += bytes;
    } else if (this.#names.size < 10 * MAX_NAMES) {
      this.#names.set(event, { name: event, count: 1, bytes });
    }
  }
}

/** Frames that carry text; binary and control frames do not. */
const CONTENT: ReadonlySet<StoredFrame["type"]> = new Set(["event", "item", "text", "continuation"]);

function shownChat(response: ChatResponse): AssembledChat {
  const { usage } = response;
  return {
    format: response.format,
    id: response.id,
    model: response.model,
    choices: response.choices.map((choice) => ({
      index: choice.index,
      text: choice.text,
      reasoning: choice.reasoning,
      refusal: choice.refusal,
      tool_calls: choice.toolCalls.map((call) => ({ id: call.id, name: call.name, arguments: call.arguments })),
      finish_reason: choice.finishReason,
    })),
    usage:
      usage === null
        ? null
        : {
            input_tokens: usage.inputTokens,
            output_tokens: usage.outputTokens,
            total_tokens: usage.totalTokens,
            cached_input_tokens: usage.cachedInputTokens,
            reasoning_tokens: usage.reasoningTokens,
          },
    error: response.error,
    complete: response.isComplete,
  };
}
