// Tested by open-state-store.test.ts
import { storageTroubleOf, type StorageTrouble } from "@headworks/storage-trouble";

/** Why the store refuses or cannot do something. */
export type StoreTrouble = StorageTrouble | "too-new" | "foreign";

/** A sentence for an operator, and what it is about. */
export class StateStoreError extends Error {
  override readonly name = "StateStoreError";
  readonly trouble: StoreTrouble;

  constructor(trouble: StoreTrouble, message: string) {
    super(message);
    this.trouble = trouble;
  }
}

const SENTENCES: Readonly<Record<Exclude<StorageTrouble, "other">, string>> = {
  full: "The disk of the state store is full",
  "read-only": "The file of the state store cannot be written",
  io: "The disk of the state store reports an error",
  busy: "The state store is in use by another process",
  corrupt: "The file of the state store is damaged, or no database",
};

/** Says in a sentence with the file's name what went wrong. */
export function describeTrouble(error: unknown, path: string): StateStoreError {
  if (error instanceof StateStoreError) return error;
  const trouble = storageTroubleOf(error);
  const cause = error instanceof Error ? error.message : String(error);
  const sentence = trouble === "other" ? "The state store broke" : SENTENCES[trouble];
  return new StateStoreError(trouble, `${sentence} (${path}: ${cause})`);
}
