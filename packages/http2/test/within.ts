const WAIT_MS = 10_000;

/** Waits with a limit, and says what was waited for. */
export async function within<T>(work: Promise<T>, what: () => string): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`${what()} within ${WAIT_MS} ms`)), WAIT_MS);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
