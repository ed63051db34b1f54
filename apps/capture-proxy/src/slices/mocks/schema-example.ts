import { isNumeric } from "@headworks/json";
import { listOf, member, type Members, membersOf, textOf } from "./imported-mocks.ts";

/** Resolves a local reference such as `#/components/schemas/User`; undefined for others. */
export type Resolve = (reference: string) => unknown;

/** Bounds of one example: number of values, and nesting depth. */
const MAX_VALUES = 2000;
const DEEPEST = 16;
/** How often a schema may occur inside itself before its example ends. */
const MAX_REPEATS = 1;

/** An example for a schema of OpenAPI 3: its own or default, else by type. Recursive schemas end. */
export function exampleOf(schema: unknown, resolve: Resolve): unknown {
  return new ExampleMaker(resolve).make(schema, 0) ?? null;
}

class ExampleMaker {
  readonly #resolve: Resolve;
  readonly #open: string[] = [];
  #values = 0;

  constructor(resolve: Resolve) {
    this.#resolve = resolve;
  }

  /** Undefined when nothing is known, and at the end of a recursive schema. */
  make(schema: unknown, depth: number): unknown {
    this.#values += 1;
    if (depth > DEEPEST || this.#values > MAX_VALUES) return undefined;
    const members = membersOf(schema);
    if (members === undefined) return schema === true ? {} : undefined;
    const reference = textOf(member(members, "$ref"));
    if (reference !== undefined) return this.#referred(reference, depth);
    const declared = declaredExample(members);
    if (declared !== undefined) return declared.value;
    const parts = listOf(member(members, "allOf"));
    if (parts.length > 0) return this.#allOf(members, parts, depth);
    for (const name of ["oneOf", "anyOf"]) {
      for (const branch of listOf(member(members, name))) {
        if (textOf(member(membersOf(branch), "type")) === "null") continue;
        const made = this.make(branch, depth + 1);
        if (made !== undefined) return merged(made, this.#ofType(members, depth, false));
      }
    }
    return this.#ofType(members, depth, true);
  }

  #referred(reference: string, depth: number): unknown {
    if (this.#open.filter((each) => each === reference).length > MAX_REPEATS) return undefined;
    this.#open.push(reference);
    try {
      return this.make(this.#resolve(reference), depth + 1);
    } finally {
      this.#open.pop();
    }
  }

  #allOf(members: Members, parts: readonly unknown[], depth: number): unknown {
    let whole = this.#ofType(members, depth, false);
    for (const part of parts.slice(0, 50)) whole = merged(whole, this.make(part, depth + 1));
    return whole;
  }

  #ofType(members: Members, depth: number, guesses: boolean): unknown {
    switch (typeOf(members)) {
      case "object":
        return this.#object(members, depth);
      case "array":
        return this.#array(members, depth);
      case "string":
        return textExample(members);
      case "integer":
        return numberExample(members, 1);
      case "number":
        return numberExample(members, 1.5);
      case "boolean":
        return true;
      case "null":
        return null;
      default:
        return guesses ? {} : undefined;
    }
  }

  #object(members: Members, depth: number): unknown {
    const entries: [string, unknown][] = [];
    const properties = membersOf(member(members, "properties")) ?? {};
    for (const [name, schema] of Object.entries(properties)) {
      if (member(membersOf(schema), "writeOnly") === true) continue;
      const made = this.make(schema, depth + 1);
      if (made !== undefined) entries.push([name, made]);
    }
    const more = member(members, "additionalProperties");
    if (entries.length === 0 && membersOf(more) !== undefined) {
      const made = this.make(more, depth + 1);
      if (made !== undefined) entries.push(["key", made]);
    }
    return Object.fromEntries(entries);
  }

  #array(members: Members, depth: number): unknown {
    const first = listOf(member(members, "prefixItems"));
    if (first.length > 0) return first.slice(0, 100).map((item) => this.make(item, depth + 1) ?? null);
    const min = wholeNumber(member(members, "minItems")) ?? 1;
    const count = Math.min(Math.max(1, min), 20, wholeNumber(member(members, "maxItems")) ?? 20);
    const items: unknown[] = [];
    for (let index = 0; index < count; index += 1) {
      const made = this.make(member(members, "items"), depth + 1);
      if (made === undefined) break;
      items.push(made);
    }
    return items;
  }
}

function declaredExample(members: Members): { readonly value: unknown } | undefined {
  for (const name of ["example", "const", "default"]) {
    if (Object.hasOwn(members, name) && members[name] !== undefined) return { value: members[name] };
  }
  for (const name of ["examples", "enum"]) {
    const [first] = listOf(member(members, name));
    if (first !== undefined) return { value: first };
  }
  return undefined;
}

/** 3.1 allows lists of types; a schema without type is often an object. */
function typeOf(members: Members): string | undefined {
  const type = member(members, "type");
  const named = Array.isArray(type) ? listOf(type).find((each) => each !== "null") : type;
  if (typeof named === "string") return named;
  if (Object.hasOwn(members, "properties") || Object.hasOwn(members, "additionalProperties")) return "object";
  return Object.hasOwn(members, "items") || Object.hasOwn(members, "prefixItems") ? "array" : undefined;
}

const BY_FORMAT: Readonly<Record<string, string>> = {
  "date-time": "2026-01-01T00:00:00Z",
  date: "2026-01-01",
  time: "00:00:00Z",
  duration: "PT1H",
  email: "user@example.com",
  uuid: "00000000-0000-4000-8000-000000000000",
  uri: "https://example.com/",
  url: "https://example.com/",
  "uri-reference": "/path",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  byte: "dGV4dA==",
  binary: "",
  password: "password",
};

function textExample(members: Members): string {
  const known = BY_FORMAT[textOf(member(members, "format")) ?? ""];
  if (known !== undefined) return known;
  const min = Math.min(wholeNumber(member(members, "minLength")) ?? 0, 1000);
  const max = wholeNumber(member(members, "maxLength")) ?? 1000;
  return "string".padEnd(min, "x").slice(0, Math.max(max, min));
}

function numberExample(members: Members, usual: number): number {
  const number = (name: string): number | undefined => {
    const value = member(members, name);
    return isNumeric(value) && Number.isFinite(Number(value)) ? Number(value) : undefined;
  };
  const step = number("multipleOf");
  const above = number("exclusiveMinimum");
  const min = number("minimum") ?? (above === undefined ? undefined : above + 1);
  const below = number("exclusiveMaximum");
  const max = number("maximum") ?? (below === undefined ? undefined : below - 1);
  let value = usual;
  if (min !== undefined && value < min) value = min;
  if (max !== undefined && value > max) value = max;
  if (step === undefined || step <= 0) return value;
  const multiple = Math.ceil(value / step) * step;
  return Number.isFinite(multiple) ? multiple : value;
}

function wholeNumber(value: unknown): number | undefined {
  const number = isNumeric(value) ? Number(value) : undefined;
  return number !== undefined && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

function merged(left: unknown, right: unknown): unknown {
  const a = membersOf(left);
  const b = membersOf(right);
  if (a === undefined || b === undefined) return left === undefined ? right : left;
  return Object.fromEntries([...Object.entries(a), ...Object.entries(b)]);
}
