import { storageErrorKind, type StorageErrorKind } from "@headworks/files";

export type StoreErrorKind = StorageErrorKind | "too-new" | "foreign";

/** A message for an operator and the kind of error. */
export class StateStoreError extends Error {
  override readonly name = "StateStoreError";
  readonly errorKind: StoreErrorKind;

  constructor(errorKind: StoreErrorKind, message: string) {
    super(message);
    this.errorKind = errorKind;
  }
}

const SENTENCES: Readonly<Record<Exclude<StorageErrorKind, "other">, string>> = {
  full: "The disk of the state store is full",
  "read-only": "The file of the state store cannot be written",
  io: "The disk of the state store reports an error",
  busy: "The state store is in use by another process",
  corrupt: "The file of the state store is damaged, or no database",
};

/** Describes an error in a sentence with the file's name. */
export function toStateStoreError(error: unknown, path: string): StateStoreError {
  if (error instanceof StateStoreError) return error;
  const errorKind = storageErrorKind(error);
  const cause = error instanceof Error ? error.message : String(error);
  const sentence = errorKind === "other" ? "The state store broke" : SENTENCES[errorKind];
  return new StateStoreError(errorKind, `${sentence} (${path}: ${cause})`);
}
