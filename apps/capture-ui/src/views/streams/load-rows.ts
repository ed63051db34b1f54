// Tested by ../../../../../e2e/ui-streams.test.ts
import { readJson } from "@headworks/exact-json";
import type { StreamFrame, StreamSummary } from "@headworks/capture-contract";
import { ApiFailure, operationUrl, operations } from "../../api.ts";
import type { RowPage } from "./paged-rows.ts";

/** Characters of a payload that a row can show; four bytes each at most. */
const PREVIEW_BYTES = 400;

/** What of the frames of a stream is shown. */
export interface FrameFilter {
  readonly direction: "all" | "send" | "receive";
  readonly search: string;
}

/** A page of streams, newest first. */
export async function loadStreams(
  kind: StreamSummary["kind"] | "all",
  offset: number,
  limit: number,
  signal: AbortSignal,
): Promise<RowPage<StreamSummary>> {
  const query = { limit, offset, ...(kind === "all" ? {} : { kind }) };
  return await load<StreamSummary>(operationUrl(operations.streams.listStreams, { query }), signal);
}

/** A page of a stream's frames, in their order. */
export async function loadFrames(
  id: string,
  { direction, search }: FrameFilter,
  offset: number,
  limit: number,
  signal: AbortSignal,
): Promise<RowPage<StreamFrame>> {
  const query = {
    limit,
    offset,
    preview: PREVIEW_BYTES,
    ...(direction === "all" ? {} : { direction }),
    ...(search === "" ? {} : { search }),
  };
  return await load<StreamFrame>(operationUrl(operations.streams.listStreamFrames, { params: { id }, query }), signal);
}

/** The number of all rows stands in a header field, which the typed client does not give. */
async function load<T>(url: string, signal: AbortSignal): Promise<RowPage<T>> {
  let response: Response;
  try {
    response = await fetch(url, { signal });
  } catch (error) {
    throw new ApiFailure(0, "UNREACHABLE", "Weir does not answer", undefined, error);
  }
  const body: unknown = readJson(await response.text());
  if (!response.ok) {
    const { error, code } = body as { readonly error?: string; readonly code?: string };
    throw new ApiFailure(response.status, code ?? "UNKNOWN", error ?? `The service answered ${response.status}`);
  }
  const rows = body as readonly T[];
  return { rows, total: Number(response.headers.get("x-total-count") ?? rows.length) };
}
