import type { WsPayload, wsTrafficOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { OPCODES } from "@headworks/websocket";
import { notFound } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import type { StoredFrame, StreamRow, StreamStore } from "#storage/streams/stream-store.ts";
import { createMessageHandlers } from "./message-handlers.ts";
import type { PausedMessages } from "./paused-messages.ts";
import { createRuleHandlers } from "./rule-handlers.ts";
import type { RuleHandlersParts } from "./rule-handlers.ts";
import { shownConnection, shownMessage, shownPayload } from "./shown-message.ts";
import type { WsTrafficInterceptor } from "./ws-traffic.interceptor.ts";

/** A fragmented message is put together from this many frames before its last one. */
const JOINED_FRAMES = 1000;
/** and in one answer this often. */
const JOINED_MESSAGES = 50;

export interface WsTrafficOperationsParts extends RuleHandlersParts {
  readonly host: Pick<SliceHost, "streams" | "store">;
  readonly interceptor: WsTrafficInterceptor;
  readonly paused: PausedMessages;
}

/** Handlers of the operations on WebSocket traffic. */
export function createWsTrafficOperations(parts: WsTrafficOperationsParts): Handlers<typeof wsTrafficOperations> {
  const { host, interceptor, paused } = parts;
  const { streams } = host;
  const show = (row: StreamRow) => shownConnection(row, interceptor.control(row.id) !== undefined);
  const found = async (id: string): Promise<StreamRow> => {
    const row = await streams.getStream(id);
    return row?.kind === "websocket" ? row : notFound("connection", id);
  };
  return {
    ...createRuleHandlers(parts),
    ...createMessageHandlers({ interceptor, paused, found }),
    listWsConnections: async ({ query, signal }) => {
      const { session_id: session = host.store.activeSessionId, limit = 100, offset = 0 } = query;
      const sessionId = session === "all" ? undefined : session;
      const page = await streams.listStreams({ kind: "websocket", sessionId, limit, offset }, signal);
      return { status: 200, headers: countedAs(page.total), body: page.streams.map(show) };
    },
    getWsConnection: async ({ params }) => ({ status: 200, body: show(await found(params.id)) }),
    listWsMessages: async ({ query, signal }) => {
      const { connection_id: streamId, direction, message_type: type, search, limit = 100, offset = 0 } = query;
      const filter = { kind: "websocket", streamId, direction, type, limit, offset, order: "asc" } as const;
      const page = await streams.listFrames({ ...filter, search: search === "" ? undefined : search }, signal);
      const joined = await joinedPayloads(streams, page.frames);
      const body = page.frames.map((frame) => shownMessage(frame, joined.get(frame)));
      return { status: 200, headers: countedAs(page.total), body };
    },
    clearWsTraffic: async () => {
      await streams.clear("websocket");
      return { status: 204 };
    },
    getWsStats: async () => {
      const stats = await streams.stats("websocket");
      return {
        status: 200,
        body: {
          connections: stats.streams,
          open_connections: stats.openStreams,
          messages_sent: stats.framesSent,
          messages_received: stats.framesReceived,
          messages_stored: stats.framesStored,
          messages_not_stored: stats.framesNotStored,
          bytes_sent: stats.bytesSent,
          bytes_received: stats.bytesReceived,
          stored_bytes: stats.storedBytes,
          by_type: { ...stats.byType },
          paused: paused.size,
        },
      };
    },
  };
}

/** For each frame that ends a message of several: what all of them say. */
async function joinedPayloads(
  streams: StreamStore,
  frames: readonly StoredFrame[],
): Promise<ReadonlyMap<StoredFrame, WsPayload>> {
  const joined = new Map<StoredFrame, WsPayload>();
  for (const last of frames) {
    if (last.opcode !== OPCODES.continuation || !last.isFinal || joined.size >= JOINED_MESSAGES) continue;
    const { streamId, direction, ordinal } = last;
    const afterOrdinal = Math.max(0, ordinal - JOINED_FRAMES);
    const { frames: before } = await streams.listFrames({
      streamId,
      direction,
      afterOrdinal,
      limit: JOINED_FRAMES,
      offset: 0,
      order: "asc",
    });
    const parts: StoredFrame[] = [];
    for (const frame of before.filter((one) => one.ordinal <= ordinal && one.effect === null).reverse()) {
      if (frame.opcode > OPCODES.binary) continue;
      parts.unshift(frame);
      if (frame.opcode !== OPCODES.continuation) break;
    }
    const [first] = parts;
    if (first === undefined || first.opcode === OPCODES.continuation) continue;
    const sizeBytes = parts.reduce((sum, part) => sum + part.sizeBytes, 0);
    joined.set(last, shownPayload(Buffer.concat(parts.map(({ payload }) => payload)), sizeBytes, first.type));
  }
  return joined;
}

function countedAs(total: number): Readonly<Record<string, string>> {
  return { "x-total-count": String(total) };
}
