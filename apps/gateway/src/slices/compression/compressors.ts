import type { Transform } from "node:stream";
import { constants, createBrotliCompress, createGzip, createZstdCompress } from "node:zlib";
import type { Coding } from "./accepted-codings.ts";

/** Codings with the bounds of their levels and the level that weighs time and size best for answers made on the fly. */
const LEVELS = {
  gzip: { least: 0, most: 9, usual: 6 },
  br: { least: 0, most: 11, usual: 5 },
  zstd: { least: 1, most: 22, usual: 3 },
} as const;

/**
 * Makes a stream that compresses. What is written comes out at once, not when a block is full, so that streams of
 * events stay alive. `level` is brought into the bounds of the coding.
 */
export function createCompressor(coding: Coding, level: number | undefined): Transform {
  const { least, most, usual } = LEVELS[coding];
  const chosen = level === undefined ? usual : Math.min(most, Math.max(least, level));
  switch (coding) {
    case "gzip":
      return createGzip({ level: chosen, flush: constants.Z_SYNC_FLUSH });
    case "br":
      return createBrotliCompress({
        flush: constants.BROTLI_OPERATION_FLUSH,
        params: { [constants.BROTLI_PARAM_QUALITY]: chosen },
      });
    case "zstd":
      return createZstdCompress({
        flush: constants.ZSTD_e_flush,
        params: { [constants.ZSTD_c_compressionLevel]: chosen },
      });
  }
}
