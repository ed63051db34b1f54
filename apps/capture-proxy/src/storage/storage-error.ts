/** The disk, or the file, refuses what was asked for; it may be asked for again. */
export class StorageError extends Error {
  override readonly name = "StorageError";
}
