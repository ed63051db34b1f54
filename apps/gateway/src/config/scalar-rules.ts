import type { IssueCode } from "@headworks/gateway-contract";
import { suggestion } from "./nearest-name.ts";
import { ownChoice } from "./other-gateways.ts";
import type { Schema } from "./schema-shape.ts";

const MAX_UINT64 = 0xffff_ffff_ffff_ffffn;

/**
 * Converts a scalar to its schema's type; undefined for another type. Integers are numbers, `x-uint64` values bigints.
 */
export function scalarValue(schema: Schema, raw: unknown): string | number | bigint | boolean | undefined {
  const type = schema.type ?? typeof schema.const;
  switch (type) {
    case "string":
      return typeof raw === "string" ? raw : undefined;
    case "boolean":
      return typeof raw === "boolean" ? raw : undefined;
    case "integer":
      return schema["x-uint64"] === true ? exactInteger(raw) : wholeNumber(raw);
    case "number":
      if (typeof raw === "bigint") return Number(raw);
      return typeof raw === "number" && Number.isFinite(raw) ? raw : undefined;
    default:
      return undefined;
  }
}

function exactInteger(raw: unknown): bigint | undefined {
  if (typeof raw === "bigint") return raw;
  return typeof raw === "number" && Number.isSafeInteger(raw) ? BigInt(raw) : undefined;
}

/** Precision loss above 2^53 is harmless: all bounds lie below. */
function wholeNumber(raw: unknown): number | undefined {
  if (typeof raw === "bigint") return Number(raw);
  return typeof raw === "number" && Number.isInteger(raw) ? raw : undefined;
}

interface Problem {
  readonly code: IssueCode;
  /** Completes a sentence that begins with the field. */
  readonly message: string;
}

/**
 * The schema violation of a value of the right type. `count` is the number of written members, which may exceed the
 * readable ones. Messages never quote the document, which may contain secrets.
 */
export function constraintProblem(schema: Schema, value: unknown, count = 0): Problem | undefined {
  if (schema.const !== undefined && value !== schema.const) {
    return { code: "bad_value", message: `must be ${JSON.stringify(schema.const)}` };
  }
  if (schema.enum !== undefined && !(schema.enum as unknown[]).includes(value)) {
    return choiceProblem(schema.enum, value);
  }
  if (typeof value === "bigint") {
    // A 0 below the minimum is left to the check that suggests what was intended.
    return value >= 0n && value <= MAX_UINT64 ? undefined : outOfRange(schema.minimum ?? 0, MAX_UINT64, value);
  }
  if (typeof value === "number") return numberProblem(schema, value);
  if (typeof value === "string") return textProblem(schema, value);
  if (Array.isArray(value)) return listProblem(schema, value, count);
  if (typeof value === "object") {
    return countProblem(schema.minProperties ?? 0, schema.maxProperties, count, "field");
  }
  return undefined;
}

/** `. Did you mean "x"?`, or an empty string. */
export function choiceHint(written: string, choices: readonly string[]): string {
  const own = ownChoice(written, choices);
  return own === undefined ? suggestion(written, choices) : `. Did you mean "${own}"?`;
}

function choiceProblem(choices: readonly (string | number)[], value: unknown): Problem {
  const meant = typeof value === "string" ? choiceHint(value, choices.map(String)) : "";
  return {
    code: "bad_value",
    message: `must be one of ${choices.map((choice) => JSON.stringify(choice)).join(", ")}${meant}`,
  };
}

function boundsProblem(least: number, most: number, value: number): Problem | undefined {
  return value >= least && value <= most ? undefined : outOfRange(least, most, value);
}

function outOfRange(least: number, most: bigint | number, value: bigint | number): Problem {
  return { code: "out_of_range", message: `must be a whole number from ${least} to ${most}; it is ${value}` };
}

function numberProblem(schema: Schema, value: number): Problem | undefined {
  if (schema.type === "integer") {
    return boundsProblem(schema.minimum ?? 0, schema.maximum ?? Number.MAX_SAFE_INTEGER, value);
  }
  const { exclusiveMinimum: above, minimum = -Infinity, maximum = Infinity } = schema;
  if (value <= maximum && value >= minimum && (above === undefined || value > above)) return undefined;
  const least = above === undefined ? `at least ${minimum}` : `above ${above}`;
  return { code: "out_of_range", message: `must be ${least} and at most ${maximum}; it is ${value}` };
}

function textProblem(schema: Schema, value: string): Problem | undefined {
  const characters = value.length <= (schema.maxLength ?? Infinity) ? value.length : Array.from(value).length;
  const { minLength = 0, maxLength } = schema;
  if (characters < minLength) return { code: "out_of_range", message: "must not be empty" };
  if (maxLength !== undefined && characters > maxLength) {
    return { code: "out_of_range", message: `may have at most ${maxLength} characters; it has ${characters}` };
  }
  if (schema.pattern === undefined || compiled(schema.pattern).test(value)) return undefined;
  return { code: "bad_value", message: `must be ${schema["x-expects"] ?? `like ${schema.pattern}`}` };
}

const patterns = new Map<string, RegExp>();

/** Patterns come from the schema, never from the document. */
function compiled(pattern: string): RegExp {
  let found = patterns.get(pattern);
  if (found === undefined) patterns.set(pattern, (found = new RegExp(pattern, "u")));
  return found;
}

function listProblem(schema: Schema, value: readonly unknown[], count: number): Problem | undefined {
  if (schema.uniqueItems === true && new Set(value).size < value.length) {
    return { code: "bad_value", message: "has the same value twice" };
  }
  return countProblem(schema.minItems ?? 0, schema.maxItems, count, "value");
}

function countProblem(least: number, most: number | undefined, count: number, what: string): Problem | undefined {
  if (count < least) {
    return { code: "out_of_range", message: `needs at least ${least} ${what}${least === 1 ? "" : "s"}` };
  }
  if (most === undefined || count <= most) return undefined;
  return { code: "out_of_range", message: `may have at most ${most} ${what}${most === 1 ? "" : "s"}; it has ${count}` };
}
