import { chosenBranch, memberSchema, type Schema } from "./schema-shape.ts";
import type { FieldPath } from "./pointer.ts";

export interface AnnotatedField {
  readonly fieldPath: FieldPath;
  readonly schema: Schema;
  readonly value: unknown;
}

/** All values below `value` whose schema has `keyword`; members of mappings in schema order. */
export function annotatedFields(schema: Schema, value: unknown, keyword: keyof Schema): AnnotatedField[] {
  const found: AnnotatedField[] = [];
  if (mayHold(schema, keyword)) collect(schema, value, keyword, [], found);
  return found;
}

/** `place` is the current path, shared and mutated: thousands of values are visited for each match. */
function collect(
  schema: Schema,
  value: unknown,
  keyword: keyof Schema,
  fieldPath: (string | number)[],
  found: AnnotatedField[],
): void {
  if (schema[keyword] !== undefined) found.push({ fieldPath: [...fieldPath], schema, value });
  if (typeof value !== "object" || value === null) return;
  const members = value as Readonly<Record<string | number, unknown>>;
  for (const step of stepsToHolders(schema, value, keyword)) {
    const inner = memberSchema(schema, value, step);
    const member = members[step];
    if (inner === undefined || member === undefined) continue;
    fieldPath.push(step);
    collect(inner, member, keyword, fieldPath, found);
    fieldPath.pop();
  }
}

/** Replaces every value whose schema has `keyword`; parts without such values are shared, not copied. */
export function mapAnnotated<T>(schema: Schema, value: T, keyword: keyof Schema, replace: (text: string) => string): T {
  if (!mayHold(schema, keyword)) return value;
  if (schema[keyword] !== undefined && typeof value === "string") return replace(value) as T;
  if (typeof value !== "object" || value === null) return value;
  const members = value as Readonly<Record<string | number, unknown>>;
  let copy: Record<string | number, unknown> | undefined;
  for (const step of stepsToHolders(schema, value, keyword)) {
    const inner = memberSchema(schema, value, step);
    const member = members[step];
    if (inner === undefined || member === undefined) continue;
    const mapped = mapAnnotated(inner, member, keyword, replace);
    if (mapped !== member) (copy ??= copyOf(value))[step] = mapped;
  }
  return (copy ?? value) as T;
}

function copyOf(value: object): Record<string | number, unknown> {
  if (Array.isArray(value)) return [...(value as unknown[])] as unknown as Record<number, unknown>;
  // Assigning `__proto__` on an object with a prototype would change that prototype.
  if (Object.getPrototypeOf(value) !== null) return { ...value };
  return Object.assign(Object.create(null) as object, value) as Record<string, unknown>;
}

/** Members that have the keyword or may contain such values; some may be absent. Skips most of a document. */
function stepsToHolders(schema: Schema, value: object, keyword: keyof Schema): Iterable<string | number> {
  if (Array.isArray(value)) return value.keys();
  const branch = schema.anyOf === undefined ? schema : chosenBranch(schema.anyOf, "type" in value && value.type);
  if (branch === undefined) return [];
  return branch.properties === undefined ? Object.keys(value) : holdingOf(branch, keyword).fields;
}

interface Holding {
  readonly any: boolean;
  /** Properties that have the keyword or may contain such values. */
  readonly fields: readonly string[];
}

const held = new WeakMap<Schema, Map<keyof Schema, Holding>>();

function holdingOf(schema: Schema, keyword: keyof Schema): Holding {
  let known = held.get(schema);
  if (known === undefined) held.set(schema, (known = new Map<keyof Schema, Holding>()));
  let holding = known.get(keyword);
  if (holding === undefined) {
    const properties = Object.entries(schema.properties ?? {});
    const fields = properties.filter(([, inner]) => mayHold(inner, keyword)).map(([name]) => name);
    const { patternProperties = {}, anyOf = [], items } = schema;
    const others = [...Object.values(patternProperties), ...anyOf, ...(items === undefined ? [] : [items])];
    const any = schema[keyword] !== undefined || fields.length > 0 || others.some((inner) => mayHold(inner, keyword));
    known.set(keyword, (holding = { any, fields }));
  }
  return holding;
}

function mayHold(schema: Schema, keyword: keyof Schema): boolean {
  return holdingOf(schema, keyword).any;
}
