import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A directory that `remove` (or `await using`) deletes with everything in it. */
export interface TemporaryDirectory {
  readonly path: string;
  /** A path inside it; nothing is created. */
  file(...segments: string[]): string;
  remove(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Makes an empty directory of its own below the system's place for such. */
export async function temporaryDirectory(): Promise<TemporaryDirectory> {
  const path = await mkdtemp(join(tmpdir(), "headworks-"));
  // Windows refuses to delete files whose last handle was closed only a moment ago.
  const remove = async (): Promise<void> =>
    await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  return { path, file: (...segments) => join(path, ...segments), remove, [Symbol.asyncDispose]: remove };
}
