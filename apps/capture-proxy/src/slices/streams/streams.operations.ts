import type { streamsOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { notFound } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import type { StreamRow } from "#storage/streams/stream-store.ts";
import { assembleStream } from "./assembled-stream.ts";
import { shownFrame, shownStream, shownStreamDetail } from "./shown-stream.ts";

/** Handlers of the operations on streams of all kinds. */
export function createStreamsOperations({
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
