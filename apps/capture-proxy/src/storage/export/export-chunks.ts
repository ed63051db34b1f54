export interface PieceSource {
  /** Undefined after the last piece. */
  next(): Promise<Uint8Array | undefined>;
  /** Called once. */
  close(): Promise<void>;
}

/**
 * Iterates the pieces of a document on demand, for one consumer. Closes the source when the consumer stops or the
 * signal aborts, even before the first read.
 */
export function exportChunks(source: PieceSource, signal: AbortSignal): AsyncIterableIterator<Uint8Array, undefined> {
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    signal.removeEventListener("abort", onAbort);
    closing ??= source.close();
    await closing;
  };
  // Closing fails only if the thread is gone, and the source with it.
  const onAbort = (): void => void close().catch(() => undefined);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  const chunks: AsyncIterableIterator<Uint8Array, undefined> = {
    next: async () => {
      signal.throwIfAborted();
      if (closing !== undefined) return { done: true, value: undefined };
      try {
        const value = await source.next();
        if (value !== undefined) return { done: false, value };
      } catch (error) {
        await close().catch(() => undefined);
        throw error;
      }
      await close();
      return { done: true, value: undefined };
    },
    return: async () => {
      await close();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => chunks,
  };
  return chunks;
}
