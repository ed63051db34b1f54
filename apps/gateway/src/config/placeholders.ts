import { pointer, type FieldPath } from "./pointer.ts";
import type { Schema } from "./schema-shape.ts";
import { MAX_ISSUES } from "./yaml-source.ts";

/** Enough to show every choice of every enumeration in the schema. */
const MAX_DRAFTS = 12;
const STAND_IN_TEXT = /unreadable-\d+/g;

/** An unreadable member and its possible values; undefined for an absent one. */
interface MissingValue {
  readonly fieldPath: FieldPath;
  readonly variety: number;
  readonly valueOf: (draft: number) => unknown;
}

/** Unreadable members with placeholders; issues found with each of them do not depend on the member. */
export class MissingValues {
  readonly #gaps: MissingValue[] = [];
  /** Pointers of the members; issues at or below them are about placeholders. */
  readonly pointers = new Set<string>();
  #serial = 0;
  #areTooMany = false;

  /** Registers a missing member; returns its placeholder of the first draft. */
  add(fieldPath: FieldPath, schema: Schema, isRequired: boolean): unknown {
    const serial = (this.#serial += 1);
    const ofSchema = varietyOf(schema);
    const variety = isRequired ? ofSchema : ofSchema + 1;
    return this.#add(fieldPath, fieldPath, {
      variety,
      valueOf: (draft) => (draft % variety === ofSchema ? undefined : placeholder(schema, draft % variety, serial)),
    });
  }

  /** Registers a value with several readings, because the member at `unread` does not determine which is right. */
  addReadings(fieldPath: FieldPath, unread: FieldPath, values: readonly unknown[]): unknown {
    return this.#add(fieldPath, unread, { variety: values.length, valueOf: (draft) => values[draft % values.length] });
  }

  #add(fieldPath: FieldPath, unread: FieldPath, gap: Omit<MissingValue, "fieldPath">): unknown {
    this.#areTooMany ||= this.#gaps.length === MAX_ISSUES;
    if (this.#areTooMany) return undefined;
    this.#gaps.push({ fieldPath: [...fieldPath], ...gap });
    this.pointers.add(pointer(unread));
    return gap.valueOf(0);
  }

  /** True above the number of listed issues; no drafts are made then. */
  get areTooMany(): boolean {
    return this.#areTooMany;
  }

  /** Number of registered members, for {@link settle}. */
  get mark(): number {
    return this.#gaps.length;
  }

  /** Fixes members registered since `mark` at their first placeholder. */
  settle(mark: number): void {
    this.#gaps.length = mark;
  }

  /** Documents with different placeholders; `first` is the first draft and is not modified. */
  *drafts<T>(first: T): Generator<T> {
    if (this.#areTooMany) return;
    yield first;
    const count = this.#gaps.reduce((max, { variety }) => Math.max(max, variety), 1);
    for (let draft = 1; draft < Math.min(count, MAX_DRAFTS); draft++) yield filled(first, this.#gaps, draft, 0) as T;
  }
}

/** Removes generated names from a message. */
export function withoutPlaceholders(message: string): string {
  return message.replaceAll(STAND_IN_TEXT, "?");
}

/** Copies a value with the placeholders of a draft; unaffected parts are shared. */
function filled(value: unknown, gaps: readonly MissingValue[], draft: number, depth: number): unknown {
  const copy = copyOf(value);
  for (const [step, below] of Map.groupBy(gaps, ({ fieldPath }) => fieldPath[depth] ?? "")) {
    const own = below.find(({ fieldPath }) => fieldPath.length === depth + 1);
    const member = own === undefined ? filled(copy[step], below, draft, depth + 1) : own.valueOf(draft);
    if (member === undefined) delete copy[step];
    else copy[step] = member;
  }
  return copy;
}

function copyOf(value: unknown): Record<string | number, unknown> {
  if (Array.isArray(value)) return [...(value as unknown[])] as never;
  // Mappings keyed by document names have no prototype.
  const copy = Object.create(Object.getPrototypeOf(value) as object | null) as Record<string, unknown>;
  return Object.assign(copy, value);
}

const varieties = new WeakMap<Schema, number>();

/** The number of distinct placeholders of a schema. */
function varietyOf(schema: Schema): number {
  let variety = varieties.get(schema);
  if (variety === undefined) varieties.set(schema, (variety = countVariety(schema)));
  return variety;
}

function countVariety(schema: Schema): number {
  if (schema.anyOf !== undefined) return schema.anyOf.length * Math.max(...schema.anyOf.map(varietyOf));
  if (schema.enum !== undefined) return schema.enum.length;
  switch (schema.type) {
    case "object": {
      const members = Object.entries(schema.properties ?? {});
      return 1 + Math.max(0, ...members.map(([name, inner]) => varietyOf(inner) + (isRequired(schema, name) ? 0 : 1)));
    }
    case "array":
      return 1 + varietyOf(schema.items ?? {});
    case "integer":
      return 3;
    case "number":
    case "boolean":
      return 2;
    default:
      return 1;
  }
}

/** A value that the schema allows; texts and integers are unique per `serial`. */
function placeholder(schema: Schema, draft: number, serial: number): unknown {
  if (schema.anyOf !== undefined) {
    const count = schema.anyOf.length;
    return placeholder(schema.anyOf[draft % count] ?? {}, Math.floor(draft / count), serial);
  }
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[draft % schema.enum.length];
  switch (schema.type) {
    case "object":
      return placeholderObject(schema, draft, serial);
    case "array": {
      const { items = {}, minItems = 1 } = schema;
      const ofItems = varietyOf(items);
      if (draft % (ofItems + 1) === ofItems) return [];
      return Array.from({ length: Math.max(1, minItems) }, () => placeholder(items, draft % (ofItems + 1), serial));
    }
    case "integer":
      return placeholderInteger(schema, draft, serial);
    case "number": {
      const { maximum = 1, exclusiveMinimum, minimum = exclusiveMinimum ?? 0 } = schema;
      return draft % 2 === 0 ? maximum : exclusiveMinimum === undefined ? minimum : minimum + maximum / 1000;
    }
    case "boolean":
      return draft % 2 === 1;
    default:
      return `unreadable-${serial}`;
  }
}

/** The first draft has required members only, the second all; later ones vary their placeholders. */
function placeholderObject(schema: Schema, draft: number, serial: number): unknown {
  const value: Record<string, unknown> = schema.properties === undefined ? (Object.create(null) as typeof value) : {};
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    const variety = varietyOf(inner);
    if (isRequired(schema, name)) value[name] = placeholder(inner, Math.max(0, draft - 1), serial);
    else if (draft > 0 && (draft - 1) % (variety + 1) < variety) {
      value[name] = placeholder(inner, (draft - 1) % (variety + 1), serial);
    }
  }
  return value;
}

function placeholderInteger(schema: Schema, draft: number, serial: number): number | bigint {
  const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = schema;
  const value = [minimum + (serial % (maximum - minimum + 1)), minimum, maximum][draft % 3] ?? minimum;
  return schema["x-uint64"] === true ? BigInt(value) : value;
}

function isRequired(schema: Schema, name: string): boolean {
  return schema.required?.includes(name) === true;
}
