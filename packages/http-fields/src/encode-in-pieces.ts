import { pipeline, Readable, type Transform } from "node:stream";
import { constants, createBrotliCompress, createDeflate, createGzip, createZstdCompress } from "node:zlib";
import { decodingPlan, type ContentCoding } from "./decoding-plan.ts";

/**
 * Applies the codings of a Content-Encoding value in order, piece by piece and off this thread, with constant memory
 * and fast settings. Undefined if one of the codings is unsupported or there are too many. An error of `pieces` is
 * thrown by the result.
 */
export function encodeInPieces(
  pieces: Iterable<Uint8Array>,
  contentEncoding: string | readonly string[] | undefined,
): AsyncIterable<Uint8Array> | undefined {
  const { steps, remaining } = decodingPlan(contentEncoding);
  if (remaining.length > 0) return undefined;
  const source = Readable.from(pieces);
  const streams = steps.toReversed().map(openStream);
  const last = streams.at(-1);
  if (last === undefined) return source;
  // An error destroys the last stream, and with it the loop over it.
  pipeline([source, ...streams], () => undefined);
  return last;
}

function openStream(coding: ContentCoding): Transform {
  switch (coding) {
    case "gzip":
      return createGzip({ level: 1 });
    case "deflate":
      return createDeflate({ level: 1 });
    case "br":
      return createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
    case "zstd":
      return createZstdCompress();
  }
}
