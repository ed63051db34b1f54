/** Path from the root of a document to a value. */
export type FieldPath = readonly (string | number)[];

/** Formats a path as a JSON pointer (RFC 6901). */
export function pointer(fieldPath: FieldPath): string {
  return fieldPath.map((step) => `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
