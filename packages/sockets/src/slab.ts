import { trackExternalMemory } from "./external-memory.ts";

/** So many small writes share a piece of memory: one piece each cost as much as what is written there. */
const SHEET_BYTES = 65_536;
/** Larger ones have one of their own. */
export const MAX_SHARED_SLICE_BYTES = 16_384;

let sheet = Buffer.alloc(0);
let usedBytes = 0;

/** Memory for one write that may be looked at for as long as it takes. */
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
