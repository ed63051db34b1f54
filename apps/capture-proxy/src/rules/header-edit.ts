import { utf8Octets, utf8Reading, wireText } from "@headworks/http-fields";
import { fieldValues, type RawFields, removeField, setField } from "@headworks/http1";
import type { Replaced } from "@headworks/linear-pattern";

/** Why a field cannot have this value; undefined when it can. */
export function valueProblem(value: string): string | undefined {
  return /[\r\n\0]/.test(value) ? "a field cannot contain line breaks or NUL" : undefined;
}

/** Returns the fields with `name` set to the value, or with the value added. */
export function withField(fields: Readonly<RawFields>, name: string, value: string, append: boolean): RawFields {
  const changed = [...fields];
  if (append) changed.push(name, value);
  else setField(changed, name, value);
  return changed;
}

export function withoutField(fields: Readonly<RawFields>, name: string): { fields: RawFields; count: number } {
  const lowerName = name.toLowerCase();
  const count = fieldValues(fields, lowerName).length;
  const changed = [...fields];
  if (count > 0) removeField(changed, lowerName);
  return { fields: changed, count };
}

/** Returns the fields with each value of the name rewritten, or the reason why not. */
export function withRewrittenField(
  fields: Readonly<RawFields>,
  name: string,
  rewrite: (value: string) => Replaced | "gave-up",
): { fields: RawFields; count: number } | string {
  const lowerName = name.toLowerCase();
  const changed = [...fields];
  let count = 0;
  for (let at = 0; at < changed.length; at += 2) {
    if (changed[at]?.toLowerCase() !== lowerName) continue;
    const written = changed[at + 1] ?? "";
    const value = utf8Reading(written) ?? written;
    const result = rewrite(value);
    if (result === "gave-up") return "the pattern takes too long on this value";
    const problem = valueProblem(result.text);
    if (problem !== undefined) return problem;
    if (result.text === value) continue;
    const text = result.text.trim();
    changed[at + 1] = value === written ? wireText(text) : utf8Octets(text);
    count += 1;
  }
  return { fields: changed, count };
}
