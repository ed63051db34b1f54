import { type Command, InvalidArgumentError, Option } from "commander";
import type { Operation } from "@headworks/contract-kit";
import type { CommandShape } from "./command-names.ts";

/** The parts of a JSON Schema that decide how a flag reads. */
interface Schema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly $ref?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly default?: unknown;
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** One property of a request as a flag or a positional word. */
export interface InputProperty {
  readonly location: "query" | "body";
  /** Names from the outside in: `["upstream_proxy", "host"]`. */
  readonly path: readonly string[];
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** Path parameters of an operation in the order of its path, with their choices. */
export function pathParameters(
  operation: Operation,
): { readonly name: string; readonly choices: readonly string[] | undefined }[] {
  const properties = schemaOf(operation.params).properties ?? {};
  return Array.from(operation.path.matchAll(/\{(\w+)\}/g), ([, name = ""]) => ({
    name,
    choices: properties[name]?.enum,
  }));
}

/** The properties of a request besides its path; a body's property takes precedence over a query's of the same name. */
export function inputProperties(operation: Operation, shape: CommandShape): InputProperty[] {
  const hidden = shape.hidden ?? [];
  const isHidden = (name: string): boolean => hidden.some((each) => name === each || name.startsWith(`${each}.`));
  const isUpload = operation.body !== undefined && "upload" in operation.body;
  const body = isUpload ? [] : leaves(schemaOf(operation.body), "body", []);
  const inBody = new Set(body.map((property) => property.path.join(".")));
  const query = leaves(schemaOf(operation.query), "query", []).filter(({ path }) => !inBody.has(path.join(".")));
  return [...query, ...body].filter(({ path }) => !isHidden(path.join(".")));
}

function schemaOf(schema: unknown): Schema {
  return schema ?? {};
}

/** Properties of responses that bodies may contain but not change. */
const READ_ONLY: ReadonlySet<string> = new Set([
  "id",
  "created_at",
  "updated_at",
  "saved_at",
  "hit_count",
  "source_entry_id",
  "device_id",
  "http_version",
  "body_size",
  "body_state",
  "body_stored_size",
  "truncated",
]);

/** Whether one word can express the value: text, number, boolean, or a list of these. Others need `--body`. */
function isSayable(schema: Schema): boolean {
  const inner = innerSchema(schema);
  if (inner.anyOf !== undefined || inner.oneOf !== undefined || inner.$ref !== undefined) return false;
  if (inner.type === "array") return inner.items !== undefined && SCALARS.has(inner.items.type ?? "");
  return SCALARS.has(inner.type ?? "");
}

const SCALARS: ReadonlySet<string> = new Set(["string", "integer", "number", "boolean"]);

/** The flag of a property; `--body` is the whole body. */
function flagOf(path: readonly string[]): string {
  const name = path.join("-").replaceAll("_", "-");
  return name === "body" ? "--text" : `--${name}`;
}

function leaves(schema: Schema | undefined, location: "query" | "body", path: readonly string[]): InputProperty[] {
  const required = new Set(schema?.required);
  return Object.entries(schema?.properties ?? {}).flatMap(([name, property]) => {
    const own = [...path, name];
    if (location === "body" && READ_ONLY.has(name)) return [];
    const inner = innerSchema(property);
    if (inner.type === "object" && inner.properties !== undefined) return leaves(inner, location, own);
    if (!isSayable(property)) return [];
    return [{ location, path: own, schema: property, isRequired: required.has(name) && path.length === 0 }];
  });
}

/** The flag of a property. */
export class PropertyOption extends Option {
  readonly property: InputProperty;
  /** Whether the command does nothing without it, or without `--body`. */
  readonly isNeeded: boolean;

  constructor(flags: string, property: InputProperty, isNeeded: boolean) {
    super(flags, descriptionOf(property, isNeeded));
    this.property = property;
    this.isNeeded = isNeeded;
  }
}

interface Box {
  readonly value: unknown;
}

/**
 * Adds the flags of a property to a command; booleans also get a negated form. With `isBodyOptional` a property that the
 * body needs may still be left out with the whole body.
 */
export function addPropertyOptions(
  command: Command,
  property: InputProperty,
  given: string | undefined,
  isBodyOptional = false,
): void {
  const flag = flagOf(property.path);
  const flags = given ?? (isBoolean(property.schema) ? flag : `${flag} <${placeholder(property.schema)}>`);
  const isRequired = property.isRequired && !(property.location === "body" && isBodyOptional);
  const option = new PropertyOption(flags, property, isRequired);
  if (!isBoolean(property.schema)) {
    // In a box: commander takes a parsed null for an absent value.
    const parse = (text: string, previous: Box | undefined): Box => ({
      value: readText(property.schema, text, previous?.value),
    });
    const inner = innerSchema(property.schema);
    // For help and completion; the parser rejects other values.
    if (inner.enum !== undefined) option.argChoices = [...inner.enum];
    command.addOption(option.argParser(parse));
    return;
  }
  command.addOption(option);
  command.addOption(new Option(`--no-${option.name()}`, `The opposite of --${option.name()}`).hideHelp());
}

/** The value that was given for a property on the command line, undefined where none was. */
export function givenValue(command: Command, property: InputProperty, flags: string | undefined): unknown {
  const key = new Option(flags ?? flagOf(property.path)).attributeName();
  if (command.getOptionValueSource(key) !== "cli") return undefined;
  const value = command.getOptionValue(key) as boolean | Box;
  if (typeof value === "object") return value.value;
  // Query parameters are texts.
  return property.schema.type === "string" ? String(value) : value;
}

/** Reads one value by its schema; lists grow with each flag and split at commas. Throws commander's usage error. */
export function readText(schema: Schema, text: string, previous?: unknown): unknown {
  if (schema.anyOf) {
    if (text === "null") return null;
    return readText(innerSchema(schema), text, previous);
  }
  if (schema.enum !== undefined && !schema.enum.includes(text)) {
    throw new InvalidArgumentError(`It must be one of ${schema.enum.join(", ")}.`);
  }
  switch (schema.type) {
    case "integer":
    case "number":
      return readNumber(schema, text);
    case "array": {
      const items = text
        .split(",")
        .map((item) => item.trim())
        .filter((item) => item !== "");
      return [
        ...(Array.isArray(previous) ? (previous as unknown[]) : []),
        ...items.map((item) => readText(schema.items ?? {}, item)),
      ];
    }
    default:
      return text;
  }
}

function readNumber(schema: Schema, text: string): number {
  const value = Number(text);
  const isWhole = schema.type !== "integer" || Number.isSafeInteger(value);
  if (text.trim() === "" || !Number.isFinite(value) || !isWhole) {
    throw new InvalidArgumentError(schema.type === "integer" ? "It must be a whole number." : "It must be a number.");
  }
  if (value < (schema.minimum ?? value)) throw new InvalidArgumentError(`It must be at least ${schema.minimum}.`);
  if (value > (schema.maximum ?? value)) throw new InvalidArgumentError(`It must be at most ${schema.maximum}.`);
  return value;
}

/** Booleans, and query parameters that only know the words true and false. */
function isBoolean(schema: Schema): boolean {
  return (
    schema.type === "boolean" ||
    (schema.enum?.length === 2 && schema.enum.includes("true") && schema.enum.includes("false"))
  );
}

/** The non-null variant of a nullable schema. */
function innerSchema(schema: Schema): Schema {
  return schema.anyOf?.find((candidate) => candidate.type !== "null") ?? schema;
}

function placeholder(schema: Schema): string {
  if (schema.anyOf !== undefined) return placeholder(innerSchema(schema));
  if (schema.enum !== undefined) return "choice";
  if (schema.type === "integer" || schema.type === "number") return "number";
  return schema.type === "array" ? "list" : "text";
}

function descriptionOf({ schema, path }: InputProperty, isRequired: boolean): string {
  const text = schema.description ?? innerSchema(schema).description ?? `The ${path.join(" ").replaceAll("_", " ")}`;
  const facts = [
    ...(schema.type === "array" ? ["comma list, repeatable"] : []),
    ...(isBoolean(schema) ? ["`--no-…` for the opposite"] : []),
    ...(schema.anyOf?.some((candidate) => candidate.type === "null") === true ? ["`null` clears it"] : []),
    ...(isRequired ? ["required"] : []),
    ...(schema.default === undefined || schema.default === null || Array.isArray(schema.default)
      ? []
      : [`default ${JSON.stringify(schema.default)}`]),
  ];
  return facts.length === 0 ? text : `${text} (${facts.join("; ")})`;
}
