import type { trafficOperations } from "@headworks/capture-contract";
import type { HandlerInput, HandlerResult } from "@headworks/contract-kit";
import { ApiError, notFound } from "#api/api-error.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import { parseRange } from "./body-range.ts";

const PIECE_BYTES = 1_048_576;

type BodyOperation = (typeof trafficOperations)["getTrafficBody"];

/** Answers a body or the part of it that Range asks for, piece by piece, never with its captured type. */
export async function respondWithBody(
  store: Pick<CaptureStore, "readBody">,
  input: HandlerInput<BodyOperation>,
): Promise<HandlerResult<BodyOperation>> {
  const { params, query, headers, signal } = input;
  const options = { decoded: query.decoded === "true", utf8: query.charset === "utf-8" };
  const read = async (start: number, end: number) => {
    const part = await store.readBody(params.id, params.side, { ...options, start, end });
    return part ?? notFound("entry", params.id);
  };
  const head = await read(0, PIECE_BYTES);
  const { totalBytes } = head;
  // There is no validator, so a conditional range never holds.
  const range = headers["if-range"] === undefined ? parseRange(single(headers["range"]), totalBytes) : undefined;
  if (range === "outside") {
    const answered = { headers: { "content-range": `bytes */${totalBytes}` } };
    throw new ApiError("RANGE_NOT_SATISFIABLE", `The body has ${totalBytes} bytes`, answered);
  }
  const { start, end } = range ?? { start: 0, end: totalBytes };
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let at = start; at < end && !signal.aborted;) {
      const part = at === 0 ? head : await read(at, Math.min(end, at + PIECE_BYTES));
      const bytes = part.bytes.length > end - at ? part.bytes.subarray(0, end - at) : part.bytes;
      // The entry was removed while it was being sent: a short answer shows it, the length was announced.
      if (bytes.length === 0) return;
      yield bytes;
      at += bytes.length;
    }
  }
  const responseHeaders = {
    "content-type": options.utf8 ? "text/plain; charset=utf-8" : "application/octet-stream",
    "content-length": String(end - start),
    "accept-ranges": "bytes",
    "x-content-type-options": "nosniff",
    "x-body-partial": String(head.partial),
    "x-body-undecodable": String(head.undecodable),
    ...(query.download === "true" && {
      "content-disposition": `attachment; filename="${params.side}-${params.id.replaceAll(/[^\w-]/gu, "_")}.bin"`,
    }),
  };
  if (range === undefined) return { status: 200, headers: responseHeaders, body: pieces() };
  const contentRange = `bytes ${start}-${end - 1}/${totalBytes}`;
  return { status: 206, headers: { ...responseHeaders, "content-range": contentRange }, body: pieces() };
}

function single(value: string | string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.[0];
}
