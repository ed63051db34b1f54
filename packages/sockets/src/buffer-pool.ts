/** One read of a socket, and a head before it. */
export const POOLED_BUFFER_BYTES = 69_632;

/**
 * Where writes are put together. The next one uses the same memory if the system took the last one at once, as it does
 * unless the other side is slow. Memory made for each write cost answers of 16 KB and of 1 MB a seventh of their time.
 */
const free: Buffer[] = [];
/** More of them wait for nobody: slow sockets in plenty would leave one each. */
const MAX_FREE = 64;

/** A desk of the caller's own, until it is returned. */
export function acquireBuffer(): Buffer {
  return free.pop() ?? Buffer.allocUnsafeSlow(POOLED_BUFFER_BYTES);
}

/** Gives it back: nobody looks at it any more. */
export function releaseBuffer(pooledBuffer: Buffer): void {
  if (free.length < MAX_FREE) free.push(pooledBuffer);
}
