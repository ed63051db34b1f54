import type { ErrorObject, ValidateFunction } from "ajv";
import addFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { TSchema } from "typebox";
import { WrittenNumber } from "@headworks/json";
import type { Operation } from "./operation.ts";

const ESCAPE_LENGTH = String.raw`\ud83d`.length;

export { JsonBytes } from "./operation.ts";

/** One problem with a request: where, and what. `path` is a JSON pointer below `params`, `query` or `body`. */
export interface Issue {
  readonly path: string;
  readonly message: string;
}

export interface RequestValues {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/**
 * Checks one request; query and path values are coerced from text, bodies never are, but for numbers that were read with
 * their text: where the schema requires a number, they become one in the body itself. Returns all issues.
 */
export type RequestValidator = (values: RequestValues) => { readonly issues: Issue[]; readonly values: RequestValues };

/**
 * For Fastify, which would otherwise load its own validation and serialization, forty files each, although the
 * binding of operations does both. A route that comes with schemas is refused.
 */
export const NO_ROUTE_COMPILERS = {
  buildValidator: () => refuseSchema,
  buildSerializer: () => refuseSchema,
};

function refuseSchema(): never {
  throw new TypeError("Schemas belong into the contract, not to routes of Fastify");
}

const options = {
  allErrors: true,
  strict: false,
  useDefaults: true,
  ownProperties: true,
  // Of a union with a discriminator, only the selected branch is checked, and only its issues are reported.
  discriminator: true,
  // Errors carry their schema, for sentences that name the choices.
  verbose: true,
  // The contracts' tests check their schemas; compiling the schema of schemas at each start would cost a tenth of a second.
  validateSchema: false,
} as const;
const bodies = new Ajv2020({ ...options, coerceTypes: false });
const texts = new Ajv2020({ ...options, coerceTypes: true });
for (const ajv of [bodies, texts]) (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);

/**
 * An operation's schemas as one function. They are compiled when it is first called: compiling a whole contract at the
 * start would cost a quarter of a second for nothing.
 */
export function compileRequestValidator(operation: Operation): RequestValidator {
  let validate: RequestValidator | undefined;
  return (values) => (validate ??= compiledRequestValidator(operation))(values);
}

function compiledRequestValidator(operation: Operation): RequestValidator {
  const params = operation.params ? compiled(texts, operation.params) : undefined;
  const query = operation.query ? compiled(texts, operation.query) : undefined;
  const isUpload = operation.body !== undefined && "upload" in operation.body;
  const body = operation.body && !isUpload ? compiled(bodies, operation.body) : undefined;
  const numbers = { params: numericNames(operation.params), query: numericNames(operation.query) };
  return (values) => {
    const issues: Issue[] = [];
    runTexts(params, values.params, "params", numbers.params, issues);
    if (query) runTexts(query, values.query, "query", numbers.query, issues);
    else refuseAll(values.query, issues);
    const absent = values.body === undefined;
    if (body && !(absent && operation.bodyOptional)) {
      if (absent) issues.push({ path: "body", message: "a JSON body is required" });
      else run(body, values.body, "body", issues);
    }
    return { issues, values };
  };
}

/** Schemas with an `$id` are compiled once and referred to, so that one may stand in several places and in itself. */
function compiled(ajv: Ajv2020, schema: TSchema): ValidateFunction {
  return ajv.compile(referring(ajv, schema) as object);
}

function referring(ajv: Ajv2020, schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map((item) => referring(ajv, item));
  if (typeof schema !== "object" || schema === null) return schema;
  const { $id, ...rest } = schema as { $id?: string };
  const copy = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, referring(ajv, value)]));
  if (typeof $id !== "string") return copy;
  const known = ajv.getSchema($id)?.schema;
  if (known === undefined) ajv.addSchema({ ...copy, $id });
  else if (JSON.stringify(known) !== JSON.stringify({ ...copy, $id })) {
    throw new TypeError(`Two schemas are called ${$id}`);
  }
  return { $ref: $id };
}

/** Names of parameters that are numbers. */
function numericNames(schema: TSchema | undefined): string[] {
  const { properties } = (schema ?? {}) as { properties?: Record<string, { type?: string }> };
  return Object.keys(properties ?? {}).filter((name) => /^(?:integer|number)$/.test(properties?.[name]?.type ?? ""));
}

/** The validator's own number parsing accepts `0x10`, `1e3` and ` 5 `, which are hardly intended. */
function runTexts(
  validate: ValidateFunction | undefined,
  value: unknown,
  location: string,
  numbers: readonly string[],
  issues: Issue[],
): void {
  const texts = (value ?? {}) as Record<string, unknown>;
  const odd = numbers.filter((name) => typeof texts[name] === "string" && !/^-?\d+(?:\.\d+)?$/.test(texts[name]));
  const found: Issue[] = [];
  run(validate, value, location, found);
  for (const name of odd) issues.push({ path: `${location}/${name}`, message: "must be a number" });
  issues.push(...found.filter((issue) => !odd.some((name) => issue.path === `${location}/${name}`)));
}

/**
 * A check of one value that is not a request: configuration files, imported documents. Compiled at its first use. Numbers
 * that were read with their text become numbers in the value where the schema requires one.
 */
export function compileValueValidator(schema: TSchema, name: string): (value: unknown) => Issue[] {
  let validate: ValidateFunction | undefined;
  return (value) => {
    validate ??= compiled(bodies, schema);
    const issues: Issue[] = [];
    run(validate, value, name, issues);
    return issues;
  };
}

/**
 * The first text or name in a JSON value with half of a surrogate pair: it could be stored, but strict readers
 * could not read any response that contains it. `text` is what the value was parsed from, UTF-8 once: only an escape
 * in it can be such a half.
 */
export function unicodeIssue(text: string, value: unknown, location: string): Issue | undefined {
  const path = pathOfHalfPair(text, value);
  if (path === undefined) return undefined;
  const names = path.map((name) => name.replaceAll("~", "~0").replaceAll("/", "~1"));
  return { path: [location, ...names].join("/"), message: "has ill-formed Unicode: half of a surrogate pair" };
}

/** Faults in the schemas of an operation by JSON Schema 2020-12; for the tests of a contract. */
export function operationProblems({ params, query, body, responses }: Operation): string[] {
  const named = Object.entries({ params, query, body, ...responses });
  return named.flatMap(([name, schema]) => {
    const isSchema = schema !== undefined && schema !== null && !("upload" in schema) && !("media" in schema);
    if (!isSchema || bodies.validateSchema(schema) === true) return [];
    return (bodies.errors ?? []).map(({ instancePath, message = "is wrong" }) => `${name}${instancePath} ${message}`);
  });
}

function run(validate: ValidateFunction | undefined, value: unknown, location: string, issues: Issue[]): void {
  if (!validate) return;
  try {
    if (validate(value) || settles(validate, value)) return;
  } catch (error) {
    // Schemas that refer to themselves are checked by recursion, and a value may nest deeper than the stack.
    if (!(error instanceof RangeError)) throw error;
    issues.push({ path: location, message: "is nested too deeply" });
    return;
  }
  for (const error of meaningful(validate.errors ?? [])) {
    issues.push({ path: location + pointer(error), message: sentence(error) });
  }
}

/**
 * Replaces numbers that keep their text by plain ones where the validator refused them, until that changes nothing more:
 * JSON that a client sends may say `100.0`. True when the value is valid then.
 */
function settles(validate: ValidateFunction, value: unknown): boolean {
  for (;;) {
    const before = validate.errors ?? [];
    const settled = before.filter(({ instancePath }) => settlesAt(value, instancePath));
    if (settled.length === 0) return false;
    if (validate(value)) return true;
  }
}

/** Whether a number with its text stood at a JSON pointer, where now a plain one stands. */
function settlesAt(root: unknown, instancePath: string): boolean {
  const names = instancePath
    .split("/")
    .slice(1)
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = names.pop();
  let holder = root;
  for (const name of names) holder = isHolder(holder) ? holder[name] : undefined;
  if (last === undefined || !isHolder(holder)) return false;
  const found = holder[last];
  if (!(found instanceof WrittenNumber)) return false;
  holder[last] = Number(found);
  return true;
}

function isHolder(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function refuseAll(query: unknown, issues: Issue[]): void {
  for (const name of Object.keys(query ?? {})) {
    issues.push({ path: `query/${name}`, message: "unknown parameter; this operation takes none" });
  }
}

/** A union reports each branch's failure and then itself; the branches say more than the union does. */
function meaningful(errors: readonly ErrorObject[]): ErrorObject[] {
  const unions = errors.filter((error) => error.keyword === "anyOf");
  const typeMisses = new Set(errors.filter(({ keyword }) => keyword === "type").map(schemaOf));
  // A value of another type is none of the choices, either.
  const isTypeMiss = (error: ErrorObject) =>
    error.keyword === "type" ||
    error.keyword === "const" ||
    (error.keyword === "enum" && typeMisses.has(schemaOf(error)));
  return errors.filter((error) => {
    if (error.keyword === "anyOf") {
      return !errors.some((other) => other !== error && inside(other, error) && !isTypeMiss(other));
    }
    // Without its tag nothing more can be said of a value than that the tag is missing.
    if (error.keyword === "discriminator" && errors.some((other) => isMissingTag(other, error))) return false;
    return !unions.some((union) => inside(error, union) && isTypeMiss(error));
  });
}

/** The path of the schema that contains a keyword. */
function schemaOf({ schemaPath, instancePath }: ErrorObject): string {
  return `${instancePath} ${schemaPath.slice(0, schemaPath.lastIndexOf("/"))}`;
}

function isMissingTag(error: ErrorObject, discriminator: ErrorObject): boolean {
  const { missingProperty } = error.params as { missingProperty?: string };
  const { tag } = discriminator.params as { tag: string };
  return error.instancePath === discriminator.instancePath && missingProperty === tag;
}

/** Issues at the path of a union or below it come from one of its branches. */
function inside({ instancePath }: ErrorObject, union: ErrorObject): boolean {
  return instancePath === union.instancePath || instancePath.startsWith(`${union.instancePath}/`);
}

function pointer(error: ErrorObject): string {
  const extra = error.params as { additionalProperty?: string; missingProperty?: string };
  const last = extra.additionalProperty ?? extra.missingProperty;
  return error.instancePath + (last === undefined ? "" : `/${last}`);
}

function sentence(error: ErrorObject): string {
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case "additionalProperties":
      return "unknown property";
    case "required":
      return "is required";
    case "enum":
      return `must be one of ${(params["allowedValues"] as unknown[]).map((value) => JSON.stringify(value)).join(", ")}`;
    case "anyOf":
      return "does not have an accepted type";
    case "discriminator":
      return discriminatorSentence(error);
    default:
      return error.message ?? "is not valid";
  }
}

/** `schema` of the error is the whole union; the names its branches go by are what may be said. */
function discriminatorSentence(error: ErrorObject): string {
  const { tag } = error.params as { tag: string };
  const { oneOf = [] } = (error.parentSchema ?? {}) as {
    oneOf?: readonly { properties?: Readonly<Record<string, { enum?: readonly string[] }>> }[];
  };
  const names = oneOf.flatMap((branch) => branch.properties?.[tag]?.enum ?? []);
  if (names.length === 0) return `must have a known ${tag}`;
  return `${tag} must be one of ${names.map((name) => JSON.stringify(name)).join(", ")}`;
}

/**
 * Where a JSON value has half of a surrogate pair: names of members and places of elements down to the first such text, or
 * to the first object that has such a name. `text` is what the value was parsed from, UTF-8 once, so that only an escape in
 * it can be such a half: where every escape of a half has the other beside it, as in nearly all texts, the value is not
 * looked through.
 */
function pathOfHalfPair(text: string, value: unknown): readonly string[] | undefined {
  return hasHalfPair(text) ? firstHalfPair(value) : undefined;
}

/** For texts that are JSON: what follows `\u` are four digits. */
function hasHalfPair(text: string): boolean {
  // From one escape to the next, since the second backslash of two begins none.
  for (let at = text.indexOf("\\"); at !== -1; at = text.indexOf("\\", at)) {
    const unit = escapedUnit(text, at);
    if (unit < 0xd800 || unit > 0xdfff) {
      at += 2;
      continue;
    }
    const next = escapedUnit(text, at + ESCAPE_LENGTH);
    if (unit > 0xdbff || next < 0xdc00 || next > 0xdfff) return true;
    at += 2 * ESCAPE_LENGTH;
  }
  return false;
}

/** The unit that `\uXXXX` at this index encodes; -1 for anything else. */
function escapedUnit(text: string, at: number): number {
  return text.startsWith("\\u", at) ? Number.parseInt(text.slice(at + 2, at + ESCAPE_LENGTH), 16) : -1;
}

type Container = readonly unknown[] | Readonly<Record<string, unknown>>;

/** Looks through a value in its order. */
function firstHalfPair(root: unknown): readonly string[] | undefined {
  // A value may nest deeper than the stack, and have more members than there is memory to note each. So what is noted is the
  // way: the containers, their names (an array has none) and how many of their members were seen. Lists beside each other do
  // not need an object for each container.
  const containers: Container[] = [];
  const namesOf: (readonly string[] | undefined)[] = [];
  const seenOf: number[] = [];
  const path = (): readonly string[] => seenOf.map((seen, depth) => namesOf[depth]?.[seen - 1] ?? String(seen - 1));
  let value = root;
  for (;;) {
    if (typeof value === "string" && !value.isWellFormed()) return path();
    if (typeof value === "object" && value !== null) {
      const names = Array.isArray(value) ? undefined : Object.keys(value);
      if (names?.some((name) => !name.isWellFormed()) === true) return path();
      containers.push(value as Container);
      namesOf.push(names);
      seenOf.push(0);
    }
    while (seenOf.length > 0 && seenOf.at(-1) === (namesOf.at(-1) ?? containers.at(-1))?.length) {
      containers.pop();
      namesOf.pop();
      seenOf.pop();
    }
    const [container, seen] = [containers.at(-1), seenOf.at(-1)];
    if (container === undefined || seen === undefined) return undefined;
    seenOf[seenOf.length - 1] = seen + 1;
    value = (container as Readonly<Record<string, unknown>>)[namesOf.at(-1)?.[seen] ?? seen];
  }
}
