import { trackExternalMemory } from "./external-memory.ts";

/** Small writes share a block; a block each would cost as much as the write. */
const SHEET_BYTES = 65_536;
/** Larger ones are allocated separately. */
export const MAX_SHARED_SLICE_BYTES = 16_384;

let sheet = Buffer.alloc(0);
let usedBytes = 0;

/** Memory for one write, never reused. */
export function allocSlice(sizeBytes: number): Buffer {
  if (sizeBytes > MAX_SHARED_SLICE_BYTES) {
    trackExternalMemory(sizeBytes);
    return Buffer.allocUnsafeSlow(sizeBytes);
  }
  if (usedBytes + sizeBytes > sheet.length) {
    sheet = Buffer.allocUnsafeSlow(SHEET_BYTES);
    usedBytes = 0;
    trackExternalMemory(SHEET_BYTES);
  }
  const start = usedBytes;
  usedBytes += sizeBytes;
  return sheet.subarray(start, usedBytes);
}
