import type { GrpcStats, grpcOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { parseGrpcStatus } from "@headworks/http-fields";
import { notFound, validationError } from "#api/api-error.ts";
import type { Slice, SliceHost } from "#slice.ts";
import type { AttributeCondition, StreamRow } from "#storage/streams/stream-store.ts";
import { createGrpcObserver } from "./grpc.observer.ts";
import { createSchemaStore, type SchemaBook } from "./schema-book.ts";
import { createSchemaHandlers, type SchemaHandlers } from "./schema-handlers.ts";
import { showCall, showConnection, showFrames, SHOWN_BYTES } from "./shown-call.ts";

/** gRPC and gRPC-Web: calls, messages and schemas. */
export function createGrpcSlice(host: SliceHost): Slice<typeof grpcOperations> {
  const { handlers, book } = createSchemaHandlers({ host, store: createSchemaStore(host.database) });
  return {
    name: "grpc",
    operations: createGrpcOperations(host, book, handlers),
    observer: createGrpcObserver(host),
  };
}

const LIMIT = 100;
/** Maximum of methods and statuses in the statistics. */
const MAX_GROUPS = 1000;

interface CallFilters {
  readonly service?: string | undefined;
  readonly method?: string | undefined;
  readonly path?: string | undefined;
  readonly status_code?: string | undefined;
  readonly connection_id?: string | undefined;
}

function createGrpcOperations(
  host: Pick<SliceHost, "streams">,
  book: () => SchemaBook,
  schemas: SchemaHandlers,
): Handlers<typeof grpcOperations> {
  const { streams } = host;
  return {
    ...schemas,
    listGrpcConnections: async ({ query, signal }) => {
      const { limit = LIMIT, offset = 0 } = query;
      const { groups, total } = await streams.listGroups(
        { kind: "grpc", attribute: "connection", limit, offset },
        signal,
      );
      return { status: 200, headers: { "x-total-count": String(total) }, body: groups.map(showConnection) };
    },
    listGrpcStreams: async ({ query, signal }) => {
      const { limit = LIMIT, offset = 0 } = query;
      const attributes = conditionsOf(query);
      const found = await streams.listStreams({ kind: "grpc", attributes, limit, offset }, signal);
      const body = found.streams.map((row) => showCall(row, book()));
      return { status: 200, headers: { "x-total-count": String(found.total) }, body };
    },
    getGrpcStream: async ({ params }) => {
      const row = await streams.getStream(params.id);
      return row?.kind === "grpc" ? { status: 200, body: showCall(row, book()) } : notFound("call", params.id);
    },
    listGrpcFrames: async ({ query, signal }) => {
      const { direction, limit = LIMIT, offset = 0, order = "desc", stream_id: streamId, search } = query;
      const filter = {
        kind: "grpc",
        attributes: conditionsOf(query),
        streamId,
        direction: direction === undefined ? undefined : direction === "request" ? "send" : "receive",
        search,
        limit,
        offset,
        order,
        payloadBytes: SHOWN_BYTES,
      } as const;
      const { frames, total } = await streams.listFrames(filter, signal);
      const ids = [...new Set(frames.map((frame) => frame.streamId))];
      const found = await streams.listStreams({ kind: "grpc", ids, limit: ids.length, offset: 0 }, signal);
      const calls = new Map(found.streams.map((row): [string, StreamRow] => [row.id, row]));
      const body = await showFrames(frames, calls, book());
      return { status: 200, headers: { "x-total-count": String(total) }, body };
    },
    getGrpcStats: async ({ signal }) => ({ status: 200, body: await readStats(streams, signal) }),
    clearGrpc: async () => {
      await streams.clear("grpc");
      return { status: 204 };
    },
  };
}

async function readStats(streams: SliceHost["streams"], signal: AbortSignal): Promise<GrpcStats> {
  const group = async (attribute: string, limit = MAX_GROUPS) =>
    await streams.listGroups({ kind: "grpc", attribute, limit, offset: 0 }, signal);
  // Queried first, because each query sees the data of its time: every call counted as ended here has its status below.
  const sums = await streams.stats("grpc");
  const [connections, statuses, methods] = await Promise.all([group("connection", 1), group("status"), group("path")]);
  return {
    connections: connections.total,
    active_streams: sums.openStreams,
    total_streams: sums.streams,
    total_frames: sums.framesSent + sums.framesReceived,
    total_bytes: sums.bytesSent + sums.bytesReceived,
    frames_not_stored: sums.framesNotStored,
    by_status: Object.fromEntries(statuses.groups.map(({ value, streams: count }) => [value, count])),
    by_method: Object.fromEntries(methods.groups.map(({ value, streams: count }) => [value, count])),
  };
}

function conditionsOf(filters: CallFilters): AttributeCondition[] {
  const conditions: AttributeCondition[] = [];
  const add = (attribute: string, match: AttributeCondition["match"], text: string | undefined): void => {
    if (text !== undefined) conditions.push({ attribute, match, text });
  };
  add("service", "name", filters.service);
  add("method", "equals", filters.method);
  add("path", "contains", filters.path);
  add("connection", "equals", filters.connection_id);
  if (filters.status_code !== undefined) {
    const code = parseGrpcStatus(filters.status_code);
    const message = "is neither a number nor the name of a gRPC status";
    if (code === undefined) throw validationError([{ path: "query/status_code", message }]);
    add("status", "equals", String(code));
  }
  return conditions;
}
