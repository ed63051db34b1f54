import { FrameReader, MessageReader } from "../src/index.ts";
import type { FrameReaderOptions, MessageReaderOptions, ReadFrame, Violation, WireFrame } from "../src/index.ts";

export const SERVER: FrameReaderOptions = { isMasked: false, allowedReserved: 0, keptBytes: 1_000_000 };
export const CLIENT: FrameReaderOptions = { ...SERVER, isMasked: true };
const PLAIN: MessageReaderOptions = { inflater: undefined, keptBytes: 1_000_000 };

export interface Reading {
  readonly frames: readonly WireFrame[];
  readonly read: readonly ReadFrame[];
  readonly violation: Violation | undefined;
  /** Bytes up to the end of the last frame. */
  readonly wireBytes: number;
}

/** Reads bytes that come in the given pieces, to their end or the first violation. */
export function readAll(
  pieces: readonly Buffer[],
  options: FrameReaderOptions = SERVER,
  messages: MessageReaderOptions = PLAIN,
): Reading {
  const reader = new FrameReader(options);
  const joiner = new MessageReader(messages);
  const frames: WireFrame[] = [];
  const read: ReadFrame[] = [];
  for (const piece of pieces) {
    let at = 0;
    while (at < piece.length && reader.violation === undefined && joiner.violation === undefined) {
      at = reader.read(piece, at);
      if (reader.frame === undefined) continue;
      frames.push(reader.frame);
      const next = joiner.take(reader.frame);
      if (next !== undefined) read.push(next);
    }
  }
  const wireBytes = frames.reduce((sum, frame) => sum + frame.wireBytes, 0);
  return { frames, read, violation: reader.violation ?? joiner.violation, wireBytes };
}

/** Bytes one by one. */
export function singly(bytes: Buffer): Buffer[] {
  return Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
}
