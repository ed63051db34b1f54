import type { RawFields } from "@headworks/http1";

/** JSON from a trusted column. */
export function parsed<T>(value: unknown): T | null {
  return typeof value === "string" ? (JSON.parse(value) as T) : null;
}

/**
 * Fields from a trusted column: a JSON array or field lines (`FieldLines`).
 * @throws SyntaxError if the file is corrupt
 */
export function storedFields(value: unknown): RawFields | null {
  if (typeof value !== "string") return null;
  return value.startsWith("[") ? (JSON.parse(value) as RawFields) : fieldsOfLines(value);
}

function fieldsOfLines(lines: string): RawFields {
  const fields: RawFields = [];
  for (let at = 0; at < lines.length;) {
    const nameEnd = lines.indexOf(": ", at);
    const lineEnd = lines.indexOf("\r\n", at);
    if (nameEnd < 0 || lineEnd < nameEnd) throw new SyntaxError("Fields in the store are damaged");
    fields.push(lines.slice(at, nameEnd), lines.slice(nameEnd + 2, lineEnd));
    at = lineEnd + 2;
  }
  return fields;
}
