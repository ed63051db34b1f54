/** How long the helpers of this package wait when they are not told: long enough for a loaded machine. */
export const defaultTimeoutMs = 10_000;

/** Settles like `work`, or rejects with `describe()` after `timeoutMs`. */
export async function withTimeout<T>(work: Promise<T>, timeoutMs: number, describe: () => string): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`${describe()} within ${timeoutMs} ms`)), timeoutMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
