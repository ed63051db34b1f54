// Tested by open-state-store.test.ts
/** Why the store refuses or cannot do something. */
export type StoreTrouble = "full" | "read-only" | "io" | "busy" | "corrupt" | "too-new" | "foreign" | "other";

/** A sentence for an operator, and what it is about. */
export class StateStoreError extends Error {
  override readonly name = "StateStoreError";
  readonly trouble: StoreTrouble;

  constructor(trouble: StoreTrouble, message: string) {
    super(message);
    this.trouble = trouble;
  }
}

const TROUBLE_BY_SQLITE_CODE: Readonly<Record<number, StoreTrouble>> = {
  5: "busy",
  6: "busy",
  8: "read-only",
  10: "io",
  11: "corrupt",
  13: "full",
  14: "io",
  26: "corrupt",
};
const TROUBLE_BY_SYSTEM_CODE: Readonly<Record<string, StoreTrouble>> = {
  ENOSPC: "full",
  EDQUOT: "full",
  EROFS: "read-only",
  EACCES: "read-only",
  EPERM: "read-only",
  EIO: "io",
};

/** Sorts an error of SQLite or of the file system. */
function troubleOf(error: unknown): StoreTrouble {
  if (error instanceof StateStoreError) return error.trouble;
  if (!(error instanceof Error)) return "other";
  if ("errcode" in error && typeof error.errcode === "number") {
    return TROUBLE_BY_SQLITE_CODE[error.errcode & 0xff] ?? "other";
  }
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return TROUBLE_BY_SYSTEM_CODE[code] ?? "other";
}

const SENTENCES: Readonly<Record<Exclude<StoreTrouble, "too-new" | "foreign" | "other">, string>> = {
  full: "The disk of the state store is full",
  "read-only": "The file of the state store cannot be written",
  io: "The disk of the state store reports an error",
  busy: "The state store is in use by another process",
  corrupt: "The file of the state store is damaged, or no database",
};

/** Says in a sentence with the file's name what went wrong. */
export function describeTrouble(error: unknown, path: string): StateStoreError {
  if (error instanceof StateStoreError) return error;
  const trouble = troubleOf(error);
  const cause = error instanceof Error ? error.message : String(error);
  const sentence =
    trouble === "too-new" || trouble === "foreign" || trouble === "other"
      ? "The state store broke"
      : SENTENCES[trouble];
  return new StateStoreError(trouble, `${sentence} (${path}: ${cause})`);
}
