/** Causes of SQLite and file system errors, distinguished where the caller can react to them. */
export type StorageErrorKind = "full" | "read-only" | "corrupt" | "busy" | "io" | "other";

/** Primary result codes of SQLite. CANTOPEN (14) has many causes, a full disk among them. */
const BY_SQLITE_CODE: Readonly<Record<number, StorageErrorKind>> = {
  5: "busy",
  6: "busy",
  8: "read-only",
  10: "io",
  11: "corrupt",
  13: "full",
  14: "io",
  26: "corrupt",
};

const BY_SYSTEM_CODE: Readonly<Record<string, StorageErrorKind>> = {
  ENOSPC: "full",
  EDQUOT: "full",
  EROFS: "read-only",
  EACCES: "read-only",
  EPERM: "read-only",
  EIO: "io",
};

/** Classifies an error thrown by `node:sqlite` or `node:fs`. */
export function storageErrorKind(error: unknown): StorageErrorKind {
  if (!(error instanceof Error)) return "other";
  if ("errcode" in error && typeof error.errcode === "number") return BY_SQLITE_CODE[error.errcode & 0xff] ?? "other";
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return BY_SYSTEM_CODE[code] ?? "other";
}
