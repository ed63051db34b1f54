import { readJson } from "@headworks/json";
import { grpcFrameLine } from "@headworks/capture-contract";
import type { GrpcFrame, StreamFrame, StreamSummary } from "@headworks/capture-contract";
import { ApiFailure, operationUrl, operations } from "../../api.ts";
import type { RowPage } from "./paged-rows.ts";

/** Bytes of a payload shown in a row: characters of at most four bytes. */
const PREVIEW_BYTES = 400;

/** The service decodes 4 MiB per response, of each message the first 64 KiB. */
const DECODED_AT_ONCE_BYTES = 4_194_304;
const LARGE_MESSAGES_AT_ONCE = 64;

/** Filter of a stream's frames. */
export interface FrameFilter {
  readonly direction: "all" | "send" | "receive";
  readonly search: string;
}

export async function loadStreams(
  kind: StreamSummary["kind"] | "all",
  offset: number,
  limit: number,
  signal: AbortSignal,
): Promise<RowPage<StreamSummary>> {
  const query = { limit, offset, ...(kind === "all" ? {} : { kind }) };
  return await load<StreamSummary>(operationUrl(operations.streams.listStreams, { query }), signal);
}

/** A frame with its decoded summary, for gRPC messages. */
export interface ListedFrame extends StreamFrame {
  readonly decodedLine?: string | undefined;
}

/** A page of a stream's frames, in order. */
export async function loadFrames(
  { id, kind }: Pick<StreamSummary, "id" | "kind">,
  filter: FrameFilter,
  offset: number,
  limit: number,
  signal: AbortSignal,
  showEarly: (page: RowPage<ListedFrame>) => void,
): Promise<RowPage<ListedFrame>> {
  const { direction, search } = filter;
  const query = {
    limit,
    offset,
    preview: PREVIEW_BYTES,
    ...(direction === "all" ? {} : { direction }),
    ...(search === "" ? {} : { search }),
  };
  const url = operationUrl(operations.streams.listStreamFrames, { params: { id }, query });
  const page = await load<StreamFrame>(url, signal);
  if (kind !== "grpc" || page.rows.length === 0) return page;
  showEarly({ ...page, rows: page.rows.map((frame) => ({ ...frame, decodedLine: "" })) });
  const bytes = page.rows.reduce((sum, { size }) => sum + size, 0);
  const step = bytes > DECODED_AT_ONCE_BYTES ? LARGE_MESSAGES_AT_ONCE : limit;
  const lines = new Map<number, string | undefined>();
  // Loaded after the frames, so that each frame of a growing stream has its summary.
  for (let at = 0; at < page.rows.length; at += step) {
    const rows = await loadGrpcFrames(id, filter, offset + at, Math.min(step, limit - at), signal);
    for (const frame of rows) lines.set(frame.ordinal, grpcFrameLine(frame)?.slice(0, PREVIEW_BYTES));
  }
  return { ...page, rows: page.rows.map((frame) => ({ ...frame, decodedLine: lines.get(frame.ordinal) })) };
}

/** The decoded form of the same frames. */
async function loadGrpcFrames(
  id: string,
  { direction, search }: FrameFilter,
  offset: number,
  limit: number,
  signal: AbortSignal,
): Promise<readonly GrpcFrame[]> {
  const query = {
    stream_id: id,
    order: "asc",
    limit,
    offset,
    ...(direction === "all" ? {} : { direction: direction === "send" ? "request" : "response" }),
    ...(search === "" ? {} : { search }),
  } as const;
  try {
    return (await load<GrpcFrame>(operationUrl(operations.grpc.listGrpcFrames, { query }), signal)).rows;
  } catch (error) {
    // A service with gRPC disabled keeps messages and decodes none.
    if (error instanceof ApiFailure && error.status === 404) return [];
    throw error;
  }
}

/** The total count is a header, which the typed client does not expose. */
async function load<T>(url: string, signal: AbortSignal): Promise<RowPage<T>> {
  let response: Response;
  try {
    response = await fetch(url, { signal });
  } catch (error) {
    throw new ApiFailure(0, "UNREACHABLE", "Weir is not responding", undefined, error);
  }
  const body: unknown = readJson(await response.text());
  if (!response.ok) {
    const { error, code } = body as { readonly error?: string; readonly code?: string };
    throw new ApiFailure(response.status, code ?? "UNKNOWN", error ?? `Weir responded with ${response.status}`);
  }
  const rows = body as readonly T[];
  return { rows, total: Number(response.headers.get("x-total-count") ?? rows.length) };
}
