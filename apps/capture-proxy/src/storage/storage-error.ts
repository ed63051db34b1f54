/** The disk or the file rejected an operation; it may be retried. */
export class StorageError extends Error {
  override readonly name = "StorageError";
}
