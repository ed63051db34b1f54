import type { FrameRecord } from "../streams/stream-store.ts";

/** A masked text frame from the client, for tests. */
export function sampleFrame(text: string | Buffer, change: Partial<FrameRecord> = {}): FrameRecord {
  const payload = Buffer.from(text);
  return {
    direction: "send",
    type: "text",
    opcode: 1,
    isFinal: true,
    atMs: 1_763_700_000_000,
    payload,
    sizeBytes: payload.length,
    wireBytes: payload.length + 6,
    isCompressed: false,
    ...change,
  };
}
