import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { ErrorObject, ValidateFunction } from "ajv";
import { compilePattern } from "@headworks/linear-pattern";
import type { LinearPattern } from "@headworks/linear-pattern";
import type { MockResponse } from "@headworks/capture-contract";

/** Patterns of a schema run on bodies, in time that is linear in the body. */
const linearRegExp = Object.assign((pattern: string) => new PatternOfSchema(pattern), { code: "linearRegExp" });

/** As much of a `RegExp` as the validator uses. */
class PatternOfSchema {
  readonly #source: string;
  readonly #compiled: LinearPattern;

  constructor(source: string) {
    this.#source = source;
    this.#compiled = compilePattern(source);
  }

  test(text: string): boolean {
    return this.#compiled.test(text);
  }

  exec(): null {
    return null;
  }

  /** The validator takes patterns with the same text for the same pattern. */
  toString(): string {
    return `/${this.#source}/`;
  }
}

const options = {
  strict: false,
  validateFormats: false,
  allErrors: false,
  code: { regExp: linearRegExp },
} as const;

/**
 * What keeps a JSON Schema from being used: it is no JSON, no schema (2020-12, or draft 6 or 7 where it says so), refers to
 * something outside of itself, or has a pattern that cannot be run in linear time. Undefined when nothing does.
 */
export function schemaProblem(text: string): string | undefined {
  const compiled = compiledSchema(text);
  return typeof compiled === "string" ? compiled : undefined;
}

/**
 * What keeps the body of an answer from fitting a schema that can be used. Answers with an error status, without a body,
 * from a file or a template are not held to it: what they say is not known now or not meant.
 */
export function bodyProblem(text: string, response: MockResponse): string | undefined {
  if (response.status_code >= 400 || response.body === null || isFilledIn(response, response.body)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(response.body);
  } catch {
    return "is not JSON, so it cannot fit response_schema";
  }
  const compiled = compiledSchema(text);
  if (typeof compiled === "string") return compiled;
  try {
    if (compiled(value)) return undefined;
  } catch (error) {
    return error instanceof RangeError ? "is nested too deeply for response_schema" : String(error);
  }
  const [first] = compiled.errors ?? [];
  return `does not fit response_schema: ${first === undefined ? "it is not valid" : sentence(first)}`;
}

function isFilledIn(response: MockResponse, body: string): boolean {
  return response.template_enabled && body.includes("{{");
}

function compiledSchema(text: string): ValidateFunction | string {
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch {
    return "is not JSON";
  }
  if (typeof schema !== "boolean" && (typeof schema !== "object" || schema === null || Array.isArray(schema))) {
    return "is not a JSON Schema";
  }
  const draft = typeof schema === "object" ? (schema as { $schema?: unknown }).$schema : undefined;
  const isOld = typeof draft === "string" && /draft-0[67]/.test(draft);
  try {
    const ajv = isOld ? new Ajv(options) : new Ajv2020(options);
    return ajv.compile(schema);
  } catch (error) {
    return `cannot be used as a JSON Schema: ${error instanceof Error ? error.message.slice(0, 300) : String(error)}`;
  }
}

function sentence(error: ErrorObject): string {
  return `${error.instancePath === "" ? "the body" : error.instancePath} ${error.message ?? "is not valid"}`;
}
