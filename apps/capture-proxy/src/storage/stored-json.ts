// Tested by open-capture-store.test.ts

/** JSON of a column, written by this program. */
export function parsed<T>(value: unknown): T | null {
  return typeof value === "string" ? (JSON.parse(value) as T) : null;
}
