import { isNumeric, type Json } from "@headworks/exact-json";

interface Shape {
  readonly types: Set<string>;
  members: Map<string, Shape> | undefined;
  elements: Shape | undefined;
}

/**
 * A document with types in the place of values: `{"id": 1, "tags": ["a"]}` becomes `{"id": "number", "tags":
 * ["string"]}`. A list is shown by one element that has what any of its elements has.
 */
export function shapeOf(value: Json): Json {
  const shape = emptyShape();
  gather(shape, value);
  return shown(shape);
}

function emptyShape(): Shape {
  return { types: new Set(), members: undefined, elements: undefined };
}

function gather(shape: Shape, value: Json): void {
  if (Array.isArray(value)) {
    shape.elements ??= emptyShape();
    for (const element of value as readonly Json[]) gather(shape.elements, element);
  } else if (typeof value === "object" && value !== null && !isNumeric(value)) {
    shape.members ??= new Map();
    for (const [name, member] of Object.entries(value)) {
      const known = shape.members.get(name) ?? emptyShape();
      shape.members.set(name, known);
      gather(known, member);
    }
  } else {
    shape.types.add(value === null ? "null" : isNumeric(value) ? "number" : typeof value);
  }
}

/** Where several kinds of value stand in the same place, all are shown. */
function shown({ types, members, elements }: Shape): Json {
  const kinds: Json[] = [];
  if (types.size > 0) kinds.push([...types].sort().join(" | "));
  if (members) kinds.push(Object.fromEntries([...members].map(([name, member]) => [name, shown(member)])));
  if (elements) kinds.push(isEmpty(elements) ? [] : [shown(elements)]);
  return kinds.length === 1 ? (kinds[0] as Json) : { "any of": kinds };
}

function isEmpty({ types, members, elements }: Shape): boolean {
  return types.size === 0 && members === undefined && elements === undefined;
}
