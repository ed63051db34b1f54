// Tested by read-document.test.ts
import { memberSchema, type Schema } from "./schema-shape.ts";
import type { Place } from "./pointer.ts";

/** A value of a document whose schema has a keyword that was asked for. */
export interface AnnotatedField {
  readonly place: Place;
  readonly schema: Schema;
  readonly value: unknown;
}

/** Every value below `value` whose schema has `keyword`, in the order of the document. */
export function annotatedFields(schema: Schema, value: unknown, keyword: keyof Schema): AnnotatedField[] {
  const found: AnnotatedField[] = [];
  if (mayHold(schema, keyword)) collect(schema, value, keyword, [], found);
  return found;
}

/** `place` is where the walk is; one for all, since thousands of values are passed for each that is found. */
function collect(
  schema: Schema,
  value: unknown,
  keyword: keyof Schema,
  place: (string | number)[],
  found: AnnotatedField[],
): void {
  if (schema[keyword] !== undefined) found.push({ place: [...place], schema, value });
  for (const [step, member] of membersOf(value)) {
    const inner = memberSchema(schema, value, step);
    if (inner === undefined || !mayHold(inner, keyword)) continue;
    place.push(step);
    collect(inner, member, keyword, place, found);
    place.pop();
  }
}

/** The same value with those whose schema has `keyword` replaced; what holds none is not copied. */
export function mapAnnotated<T>(schema: Schema, value: T, keyword: keyof Schema, replace: (text: string) => string): T {
  if (!mayHold(schema, keyword)) return value;
  if (schema[keyword] !== undefined && typeof value === "string") return replace(value) as T;
  if (Array.isArray(value)) {
    return value.map((member: unknown) => mapAnnotated(schema.items ?? {}, member, keyword, replace)) as T;
  }
  if (typeof value !== "object" || value === null) return value;
  const copy = Object.create(Object.getPrototypeOf(value) as object | null) as Record<string, unknown>;
  for (const [name, member] of Object.entries(value)) {
    const inner = memberSchema(schema, value, name);
    copy[name] = inner === undefined ? member : mapAnnotated(inner, member, keyword, replace);
  }
  return copy as T;
}

function membersOf(value: unknown): Iterable<readonly [string | number, unknown]> {
  if (Array.isArray(value)) return value.entries();
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}

const held = new WeakMap<Schema, Map<keyof Schema, boolean>>();

/** Whether a schema has the keyword anywhere; most parts of a document need no look. */
function mayHold(schema: Schema, keyword: keyof Schema): boolean {
  let known = held.get(schema);
  if (known === undefined) held.set(schema, (known = new Map<keyof Schema, boolean>()));
  let answer = known.get(keyword);
  if (answer === undefined) {
    answer =
      schema[keyword] !== undefined ||
      [
        ...Object.values(schema.properties ?? {}),
        ...Object.values(schema.patternProperties ?? {}),
        ...(schema.anyOf ?? []),
        ...(schema.items === undefined ? [] : [schema.items]),
      ].some((inner) => mayHold(inner, keyword));
    known.set(keyword, answer);
  }
  return answer;
}
