import type { FieldChanges } from "@headworks/gateway-contract";
import { removeField, setField, wireText, type RawFields } from "@headworks/http1";
import type { CompileScope } from "#slice.ts";

/**
 * Makes what sets, adds, renames and removes fields, in this order and in place; undefined when nothing is to be done.
 * Values to set and add may be references to secrets.
 */
export function compileFieldChanges(
  changes: FieldChanges | undefined,
  secret: CompileScope["secret"],
): ((fields: RawFields) => void) | undefined {
  if (changes === undefined) return undefined;
  const resolved = (values: Readonly<Record<string, string>> = {}): [string, string][] =>
    Object.entries(values).map(([name, text]) => [name, wireText(secret(text).reveal())]);
  const set = resolved(changes.set);
  const added = resolved(changes.add).flat();
  const renamed = Object.entries(changes.rename ?? {}).map(([from, to]) => [from.toLowerCase(), to] as const);
  const removed = (changes.remove ?? []).map((name) => name.toLowerCase());
  if (set.length + added.length + renamed.length + removed.length === 0) return undefined;
  return (fields) => {
    for (const [name, value] of set) setField(fields, name, value);
    fields.push(...added);
    for (const [from, to] of renamed) renameField(fields, from, to);
    for (const name of removed) removeField(fields, name);
  };
}

/** Every line of a field keeps its place and value. */
function renameField(fields: RawFields, from: string, to: string): void {
  for (let at = 0; at < fields.length; at += 2) {
    if (fields[at]?.toLowerCase() === from) fields[at] = to;
  }
}
