import { randomFillSync } from "node:crypto";

const POOL_BYTES = 8192;
const pool = Buffer.allocUnsafe(POOL_BYTES);
let used = POOL_BYTES;
let lastMs = 0;
/** Text of `lastMs`, the prefix of its ids. */
let timeText = "";
let sequence = 0;

/**
 * A UUIDv7 (RFC 9562): 48 bits of milliseconds, a 12-bit counter within the millisecond, 62 random bits. Ids ascend in
 * time, so indexes on them grow only at the end.
 */
export function newExchangeId(nowMs: number): string {
  if (nowMs > lastMs) startMillisecond(nowMs);
  else if ((sequence += 1) > 0xfff) startMillisecond(lastMs + 1);
  if (used + 8 > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  pool[used] = ((pool[used] as number) & 0x3f) | 0x80;
  const random = pool.toString("hex", used, used + 8);
  used += 8;
  const counter = (0x7000 | sequence).toString(16);
  return `${timeText}-${counter}-${random.slice(0, 4)}-${random.slice(4)}`;
}

function startMillisecond(ms: number): void {
  const hex = ms.toString(16).padStart(12, "0");
  lastMs = ms;
  timeText = `${hex.slice(0, 8)}-${hex.slice(8)}`;
  sequence = 0;
}
