/** What a document's pieces are asked of. */
export interface PieceSource {
  /** The next piece; undefined after the last. */
  next(): Promise<Uint8Array | undefined>;
  /** Nothing more is wanted. Called once. */
  close(): Promise<void>;
}

/**
 * The pieces of a document as an iterable for one reader, each asked for only when the reader wants it. The source is
 * closed when the reader has enough or the signal aborts, also before anything was read.
 */
export function exportChunks(source: PieceSource, signal: AbortSignal): AsyncIterableIterator<Uint8Array, undefined> {
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    signal.removeEventListener("abort", onAbort);
    closing ??= source.close();
    await closing;
  };
  // A source that cannot be closed any more is gone with its thread.
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
