// Tested by exchange.test.ts
import { randomFillSync } from "node:crypto";

const POOL_BYTES = 8192;
const pool = Buffer.allocUnsafe(POOL_BYTES);
let used = POOL_BYTES;
let lastMs = 0;
let sequence = 0;

/**
 * A UUID of version 7 (RFC 9562): 48 bits of milliseconds, a 12-bit counter within the millisecond, 62 random
 * bits. Ids ascend in time, so an index over them only grows at its end.
 */
export function newExchangeId(nowMs: number): string {
  if (nowMs > lastMs) {
    lastMs = nowMs;
    sequence = 0;
  } else if ((sequence += 1) > 0xfff) {
    lastMs += 1;
    sequence = 0;
  }
  if (used + 8 > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  pool[used] = ((pool[used] as number) & 0x3f) | 0x80;
  const random = pool.toString("hex", used, used + 8);
  used += 8;
  const time = lastMs.toString(16).padStart(12, "0");
  const counter = (0x7000 | sequence).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-${counter}-${random.slice(0, 4)}-${random.slice(4)}`;
}
