import { Buffer } from "node:buffer";
import { createGunzip, createInflate, createInflateRaw, gunzipSync, inflateRawSync, inflateSync } from "node:zlib";
import type { Gunzip, Inflate, InflateRaw } from "node:zlib";
import { SnappyDecoder } from "./snappy.ts";

/** Supported values of `grpc-encoding`. */
export const ENCODINGS = ["identity", "gzip", "deflate", "snappy"] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** The reason for incomplete output. */
export type DecompressionStop = "damaged" | "limit" | "unsupported";

export interface Decompressed {
  /** The output, truncated if `stop` is `limit`; the compressed bytes if decompression failed. */
  readonly bytes: Buffer;
  readonly stop: DecompressionStop | undefined;
}

/** True for an encoding that {@link decompress} supports. */
export function isEncoding(encoding: string): encoding is Encoding {
  return (ENCODINGS as readonly string[]).includes(encoding);
}

/**
 * Decompresses a complete message. Undefined if the output exceeds `limitBytes`; no more than that is produced, so a
 * small limit bounds the time.
 */
export function decompressSync(bytes: Buffer, encoding: string, limitBytes: number): Decompressed | undefined {
  if (!isEncoding(encoding)) return { bytes, stop: "unsupported" };
  if (encoding === "identity" || bytes.length === 0) {
    return bytes.length > limitBytes ? undefined : { bytes, stop: undefined };
  }
  if (encoding === "snappy") return undoSnappySync(bytes, limitBytes);
  const options = { maxOutputLength: Math.max(limitBytes, 1) };
  try {
    return { bytes: undo(bytes, encoding, options), stop: undefined };
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE" ? undefined : { bytes, stop: "damaged" };
  }
}

function undo(bytes: Buffer, encoding: "gzip" | "deflate", options: { readonly maxOutputLength: number }): Buffer {
  if (encoding === "gzip") return gunzipSync(bytes, options);
  return hasZlibHeader(bytes) ? inflateSync(bytes, options) : inflateRawSync(bytes, options);
}

function undoSnappySync(bytes: Buffer, limitBytes: number): Decompressed | undefined {
  const decoder = new SnappyDecoder(bytes, limitBytes);
  const end = decoder.step(Number.MAX_SAFE_INTEGER);
  if (end === "limit") return undefined;
  return end === "whole" ? { bytes: decoder.bytes, stop: undefined } : { bytes, stop: "damaged" };
}

/**
 * Like {@link decompressSync}, on zlib's threads (snappy: in time slices), and returns the beginning of output that
 * exceeds `limitBytes`, which also bounds memory. Never rejects.
 */
export async function decompress(bytes: Buffer, encoding: string, limitBytes: number): Promise<Decompressed> {
  if (!isEncoding(encoding)) return { bytes, stop: "unsupported" };
  if (encoding === "identity" || bytes.length === 0) return cut(bytes, limitBytes);
  if (encoding === "snappy") return await undoSnappy(bytes, limitBytes);
  const stream = open(bytes, encoding);
  const { promise, resolve } = Promise.withResolvers<Decompressed>();
  const pieces: Buffer[] = [];
  let keptBytes = 0;
  let stop: DecompressionStop | undefined;
  stream.on("data", (piece: Buffer) => {
    const kept = piece.subarray(0, limitBytes - keptBytes);
    keptBytes += kept.length;
    if (kept.length > 0) pieces.push(kept);
    if (kept.length === piece.length) return;
    stop ??= "limit";
    stream.destroy();
  });
  stream.on("error", () => {
    stop ??= "damaged";
  });
  stream.on("close", () => resolve({ bytes: stop === "damaged" ? bytes : Buffer.concat(pieces), stop }));
  stream.end(bytes);
  return promise;
}

/** Output per time slice of about half a millisecond. */
const SNAPPY_TURN_BYTES = 262_144;

async function undoSnappy(bytes: Buffer, limitBytes: number): Promise<Decompressed> {
  const decoder = new SnappyDecoder(bytes, limitBytes);
  let end = decoder.step(SNAPPY_TURN_BYTES);
  while (end === undefined) {
    const turn = Promise.withResolvers<undefined>();
    setImmediate(() => turn.resolve(undefined));
    await turn.promise;
    end = decoder.step(SNAPPY_TURN_BYTES);
  }
  if (end === "damaged") return { bytes, stop: "damaged" };
  return { bytes: decoder.bytes, stop: end === "limit" ? "limit" : undefined };
}

function open(bytes: Buffer, encoding: "gzip" | "deflate"): Gunzip | Inflate | InflateRaw {
  if (encoding === "gzip") return createGunzip();
  return hasZlibHeader(bytes) ? createInflate() : createInflateRaw();
}

/** Some peers send raw deflate without the header of RFC 1950 section 2.2. */
function hasZlibHeader(bytes: Buffer): boolean {
  return ((bytes[0] ?? 0) & 0x0f) === 8;
}

function cut(bytes: Buffer, limitBytes: number): Decompressed {
  return bytes.length > limitBytes
    ? { bytes: bytes.subarray(0, limitBytes), stop: "limit" }
    : { bytes, stop: undefined };
}
