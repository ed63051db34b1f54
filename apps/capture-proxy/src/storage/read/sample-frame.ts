import type { FrameRecord } from "../streams/stream-store.ts";

/** A frame for tests, as the data path would hand it over: a masked text that the client sent. */
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
