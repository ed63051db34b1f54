import { utf8Reading } from "@headworks/http-fields";
import { foldAscii } from "./fold.ts";

/** Values of all header fields with that lower-case name. `fields` is flat: name, value, name, value. */
export function fieldValues(fields: readonly string[], lowerName: string): string[] {
  const values: string[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = fields[index] ?? "";
    if (name.length === lowerName.length && foldAscii(name) === lowerName) values.push(fields[index + 1] ?? "");
  }
  return values;
}

/** Texts of fields, and what those whose octets are UTF-8 say, too. */
export function inBothReadings(texts: readonly string[]): readonly string[] {
  const readings = texts.map(utf8Reading).filter((text) => text !== undefined);
  return readings.length === 0 ? texts : [...texts, ...readings];
}

/** Every header field as `name: value`. */
export function fieldLines(fields: readonly string[]): string[] {
  const lines: string[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) lines.push(`${fields[index]}: ${fields[index + 1]}`);
  return lines;
}

/**
 * Cookies of both sides. With a name: the values of the cookies of exactly that name (cookie names are
 * case-sensitive, RFC 6265 section 5). Without: `name=value` of every cookie, attributes left out.
 */
export function cookiePairs(
  requestFields: readonly string[],
  responseFields: readonly string[],
  name: string | null,
): string[] {
  const found: string[] = [];
  const add = (pair: string): void => {
    const trimmed = pair.trim();
    if (trimmed === "") return;
    if (name === null) {
      found.push(trimmed);
      return;
    }
    const equals = trimmed.indexOf("=");
    if (equals !== -1 && trimmed.slice(0, equals).trimEnd() === name) found.push(trimmed.slice(equals + 1).trimStart());
  };
  for (const value of fieldValues(requestFields, "cookie")) for (const pair of value.split(";")) add(pair);
  for (const value of fieldValues(responseFields, "set-cookie")) add(value.split(";", 1)[0] ?? "");
  return found;
}
