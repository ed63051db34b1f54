export { storageErrorKind } from "./storage-trouble.ts";
export type { StorageErrorKind } from "./storage-trouble.ts";
