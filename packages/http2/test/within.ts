import { defaultTimeoutMs, withTimeout } from "@headworks/testkit";

/** Waits as long as tests do, and says what was waited for. */
export async function within<T>(work: Promise<T>, what: () => string): Promise<T> {
  return await withTimeout(work, defaultTimeoutMs, what);
}
