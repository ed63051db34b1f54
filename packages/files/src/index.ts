export { canonicalPath, makeDirectory, makeDirectorySync } from "./directories.ts";
export { storageErrorKind, type StorageErrorKind } from "./storage-error.ts";
