// Tested by header-edit.test.ts
import { fieldValues, removeField, setField } from "@headworks/http1";
import type { RawFields } from "@headworks/http1";
import type { Replaced } from "@headworks/linear-pattern";

/** Fields that say where a body ends: the engine writes them, whatever a rule says. */
const FRAMING = new Set(["content-length", "transfer-encoding"]);

/** Why a rule cannot have this field; undefined when it can. */
export function fieldProblem(name: string): string | undefined {
  return FRAMING.has(name.toLowerCase()) ? "says where the body ends, which is always worked out anew" : undefined;
}

/** The text of a value as the wire carries it, one character for each byte: anything but ASCII as UTF-8. */
export function wireValue(value: string): string {
  const isAscii = /^[\x00-\x7f]*$/.test(value);
  return isAscii ? value : Buffer.from(value, "utf8").toString("latin1");
}

/** Why a value cannot stand in a field; undefined when it can. */
export function valueProblem(value: string): string | undefined {
  return /[\r\n\0]/.test(value) ? "a field cannot hold line breaks or NUL" : undefined;
}

/** A copy of the fields in which `name` has one value more, or just this one. */
export function withField(fields: Readonly<RawFields>, name: string, value: string, append: boolean): RawFields {
  const changed = [...fields];
  if (append) changed.push(name, value);
  else setField(changed, name, value);
  return changed;
}

/** A copy without the fields of a name, and how many there were. */
export function withoutField(fields: Readonly<RawFields>, name: string): { fields: RawFields; count: number } {
  const lowerName = name.toLowerCase();
  const count = fieldValues(fields, lowerName).length;
  const changed = [...fields];
  if (count > 0) removeField(changed, lowerName);
  return { fields: changed, count };
}

/** A copy in which every value of a name was rewritten by itself; or why that cannot be. */
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
    const value = utf8Value(written) ?? written;
    const result = rewrite(value);
    if (result === "gave-up") return "the pattern takes too long on this value";
    const problem = valueProblem(result.text);
    if (problem !== undefined) return problem;
    if (result.text === value) continue;
    const text = result.text.trim();
    // Octets that were no UTF-8 stay what they were.
    const isOctets = value === written && /^[\0-\xff]*$/.test(text);
    changed[at + 1] = isOctets ? text : wireValue(text);
    count += 1;
  }
  return { fields: changed, count };
}

/** The value as people read it; undefined when its octets are no UTF-8. */
function utf8Value(value: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(value, "latin1"));
  } catch {
    return undefined;
  }
}
