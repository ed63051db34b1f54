import { readFileSync } from "node:fs";
import { Argument, type Command, Option } from "commander";
import { operations } from "@headworks/capture-contract";
import { isNumeric, readJson } from "@headworks/json";
import type { Operation, Operations } from "@headworks/contract-kit";
import { apiAddress, type ApiAddress, type ApiRequest, callApi, callJson, readText } from "./api-connection.ts";
import { COMMAND_SHAPES, commandName, type CommandShape, type CommandShortcut } from "./command-names.ts";
import { ENTRY_NAMES, paramsWithEntryIds, takesEntry, withEntryIds } from "./entry-names.ts";
import { CommandFailure, EXIT, type Invocation, type Outcome } from "./invocation.ts";
import { globalOptions } from "./global-options.ts";
import { present } from "./present.ts";
import {
  addPropertyOptions,
  givenValue,
  inputProperties,
  type InputProperty,
  pathParameters,
} from "./schema-options.ts";
import { visibleText, writeJson } from "./terminal.ts";
import { openUpload, saveResponse } from "./transfer.ts";

interface OperationCommand {
  readonly operation: Operation;
  readonly shape: CommandShape;
  readonly shortcut: CommandShortcut | undefined;
  readonly properties: readonly InputProperty[];
  readonly positional: readonly string[];
}

/** Shown below the options of commands that take a query. */
export const QUERY_TIMES = `
Times in a query are UTC unless they include a zone: since:2026-11-21T10:05 or since:2026-11-21T11:05+01:00. Tables show
local times with their zone, which can be used in queries; since:10m is ten minutes ago.
`;

/** The operations whose commands are in a group, in the order of the contract. */
export function operationsOfGroup(group: string): readonly (readonly [slice: string, name: string, Operation])[] {
  return Object.entries(operations as Readonly<Record<string, Operations>>).flatMap(([slice, table]) =>
    Object.entries(table)
      .filter(([name, { expose }]) => expose?.cli !== false && groupOf(slice, name) === group)
      .map(([name, operation]) => [slice, name, operation] as const),
  );
}

function groupOf(slice: string, name: string): string {
  return COMMAND_SHAPES[`${slice}.${name}`]?.group ?? slice;
}

/** Adds a subcommand for every operation of a group that the command line offers, and the shortcuts. */
export function addOperationCommands(
  group: Command,
  groupName: string,
  invocation: Invocation,
  outcome: Outcome,
): void {
  for (const [slice, name, operation] of operationsOfGroup(groupName)) {
    const shape = COMMAND_SHAPES[`${slice}.${name}`] ?? {};
    const add = (commandText: string, summary: string, shortcut?: CommandShortcut): void => {
      const command = group.command(commandText).summary(summary).description(summary);
      const properties = shortcut?.body === undefined ? inputProperties(operation, shape) : [];
      fillCommand(
        command,
        { operation, shape, shortcut, properties, positional: shortcut?.positional ?? shape.positional ?? [] },
        invocation,
        outcome,
      );
    };
    add(commandName(slice, name), operation.summary);
    for (const shortcut of shape.shortcuts ?? []) add(shortcut.name, shortcut.summary, shortcut);
  }
}

function fillCommand(command: Command, facts: OperationCommand, invocation: Invocation, outcome: Outcome): void {
  const { operation, properties, positional, shape } = facts;
  for (const { name, choices } of pathParameters(operation)) {
    const idText = takesEntry(operation) ? ENTRY_NAMES : "Id";
    const argument = new Argument(`<${name}>`, name === "id" ? idText : `The ${name}`);
    command.addArgument(choices === undefined ? argument : argument.choices(choices));
  }
  for (const name of positional) {
    command.argument(`<${name}>`, propertyNamed(properties, name)?.schema.description ?? `The ${name}`);
  }
  if (isUpload(operation)) command.argument("<file>", "File to send; `-` reads standard input");
  for (const property of properties) {
    const name = property.path.join(".");
    if (positional.includes(name)) continue;
    addPropertyOptions(command, shownProperty(property, shape), shape.flags?.[name], operation.bodyOptional === true);
  }
  for (const [name, flags] of Object.entries(shape.files ?? {})) {
    command.option(flags, `The ${name} from a file; \`-\` reads standard input`);
  }
  if (hasJsonBody(operation) && facts.shortcut?.body === undefined) {
    command.option(
      "--body <json>",
      "All settings as JSON, `@file` or `-` for standard input; other flags take precedence",
    );
  }
  if (hasMedia(operation)) command.option("-o, --output <file>", "Write to a file instead of standard output");
  const takesQuery = properties.some(({ location, path }) => location === "query" && path[0] === "q");
  if (takesQuery) command.addHelpText("after", QUERY_TIMES);
  for (const option of globalOptions()) if (option.long !== "--json" || !hasMedia(operation)) command.addOption(option);
  command.action(async () => {
    outcome.exitCode = await runOperation(command, facts, invocation);
  });
}

/** A property as its flag describes it: with the command line's own default, and not required beside a file. */
function shownProperty(property: InputProperty, { defaults, files }: CommandShape): InputProperty {
  const name = property.path.join(".");
  const value = defaults?.[name];
  const isRequired = property.isRequired && files?.[name] === undefined;
  if (value === undefined) return { ...property, isRequired };
  const description = property.schema.description?.replace(/\. Default: .*$/u, "");
  const schema = { ...property.schema, default: value, ...(description === undefined ? {} : { description }) };
  return { ...property, isRequired, schema };
}

/** Calls the operation with the parameters of the command line and prints the response. */
async function runOperation(command: Command, facts: OperationCommand, invocation: Invocation): Promise<number> {
  const given = command.optsWithGlobals<{ apiUrl?: string; timeout?: string; json?: boolean; output?: string }>();
  const address = apiAddress(given, invocation.environment);
  const input = await requestOf(command, facts, address, invocation);
  if (hasMedia(facts.operation)) {
    await saveResponse(await callApi(address, facts.operation, input), given.output, invocation);
    return EXIT.ok;
  }
  return await showJson(address, facts, input, given.json === true, invocation);
}

async function requestOf(
  command: Command,
  facts: OperationCommand,
  address: ApiAddress,
  invocation: Invocation,
): Promise<ApiRequest> {
  const { operation, properties, positional, shape } = facts;
  const words = Array.from(command.processedArgs as readonly string[]);
  const named = Object.fromEntries(pathParameters(operation).map(({ name }) => [name, words.shift() ?? ""]));
  const params = await paramsWithEntryIds(address, operation, named);
  const query: Record<string, unknown> = {};
  const whole = command.opts<{ body?: string }>().body;
  const bodies: { value: unknown } = {
    value: facts.shortcut?.body ?? (whole === undefined ? undefined : await readBody(whole, invocation)),
  };
  for (const property of properties) {
    const name = property.path.join(".");
    const given = positional.includes(name) ? words.shift() : await valueOf(command, property, shape, invocation);
    if (given === undefined) continue;
    const value = await withEntryIds(address, property, given);
    if (property.location === "query") query[name] = value;
    else if (bodies.value !== undefined && !isObject(bodies.value)) {
      throw new CommandFailure(EXIT.usage, "--body must be a JSON object if it is combined with other flags");
    } else bodies.value = withValue(bodies.value, property.path, value);
  }
  refuseMissing(facts, query, bodies.value);
  return {
    params,
    query,
    ...(shape.headers === undefined ? {} : { headers: shape.headers }),
    ...(bodies.value === undefined && hasJsonBody(operation) && operation.bodyOptional !== true ? { body: {} } : {}),
    ...(bodies.value === undefined ? {} : { body: bodies.value }),
    ...(isUpload(operation) ? { upload: await openUpload(words.shift() ?? "-", invocation) } : {}),
  };
}

/** What was given for a property, as its flag or as the file of its text; else its default. */
async function valueOf(
  command: Command,
  property: InputProperty,
  shape: CommandShape,
  invocation: Invocation,
): Promise<unknown> {
  const { flags, files, defaults } = shape;
  const name = property.path.join(".");
  const given = givenValue(command, property, flags?.[name]);
  const fileFlags = files?.[name];
  const path = fileFlags === undefined ? undefined : optionValue(command, fileFlags);
  if (path === undefined) return given === undefined ? defaults?.[name] : given;
  if (given === undefined) return await readTextFile(path, invocation);
  throw new CommandFailure(EXIT.usage, `${saidFlags(property, shape, " and ")} cannot be combined`);
}

function optionValue(command: Command, flags: string): string | undefined {
  return command.getOptionValue(new Option(flags).attributeName()) as string | undefined;
}

/** The flags that give a property, for messages. */
function saidFlags({ path }: InputProperty, { flags, files }: CommandShape, conjunction: string): string {
  const name = path.join(".");
  const all = [flags?.[name] ?? `--${path.join("-").replaceAll("_", "-")}`, files?.[name]];
  return all.flatMap((each) => (each === undefined ? [] : (new Option(each).long ?? []))).join(conjunction);
}

function refuseMissing(
  { properties, operation, shape }: OperationCommand,
  query: Readonly<Record<string, unknown>>,
  body: unknown,
): void {
  const given = { ...query, ...(isObject(body) ? body : {}) };
  const isBodyLeftOut = body === undefined && operation.bodyOptional === true;
  const missing = properties
    .filter((property) => property.isRequired && !(property.location === "body" && isBodyLeftOut))
    .filter(({ path }) => !Object.hasOwn(given, path.join("-")))
    .map((property) => saidFlags(property, shape, " or "));
  if (missing.length > 0) {
    throw new CommandFailure(EXIT.usage, `${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} required`);
  }
}

/** The text of a file, or of standard input for `-`. */
export async function readTextFile(path: string, invocation: Invocation): Promise<string> {
  try {
    if (path === "-") return await readText(invocation.stdin as AsyncIterable<Uint8Array>);
    return readFileSync(path, "utf8");
  } catch (error) {
    const source = path === "-" ? "standard input" : path;
    throw new CommandFailure(EXIT.failure, `Cannot read ${source}: ${(error as Error).message}`, { cause: error });
  }
}

async function readBody(text: string, invocation: Invocation): Promise<unknown> {
  const file = text === "-" ? "-" : text.startsWith("@") ? text.slice(1) : undefined;
  const json = file === undefined ? text : await readTextFile(file, invocation);
  try {
    return readJson(json);
  } catch (error) {
    const source = text === "-" ? "standard input" : (file ?? "--body");
    throw new CommandFailure(EXIT.usage, `${source} is not JSON: ${(error as Error).message}`, { cause: error });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isNumeric(value);
}

function withValue(target: unknown, path: readonly string[], value: unknown): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  const object = isObject(target) ? target : {};
  return { ...object, [name]: withValue(object[name], rest, value) };
}

/** Prints the response; returns the exit code. */
async function showJson(
  address: ApiAddress,
  { operation, shape }: OperationCommand,
  input: ApiRequest,
  isRaw: boolean,
  invocation: Invocation,
): Promise<number> {
  const { stdout, stderr } = invocation;
  const { text, value, headers } = await callJson(address, operation, input);
  const isFailure = shape.failure !== undefined && isObject(value) && value[shape.failure] !== null;
  const exitCode = isFailure ? EXIT.failure : EXIT.ok;
  if (isRaw) {
    if (text !== "") writeJson(stdout, text);
    return exitCode;
  }
  if (value === undefined) {
    stderr.write("Done\n");
    return exitCode;
  }
  if (shape.prints !== undefined && isObject(value)) {
    const result = String(value[shape.prints]);
    stdout.write(`${stdout.isTty ? visibleText(result, true) : result}\n`);
    return exitCode;
  }
  const schemaId = rowSchemaId(operation);
  const page = pageOf(value);
  stdout.write(present(page?.entries ?? value, schemaId, stdout));
  const shown = page?.entries ?? value;
  const total = page?.total ?? Number(headers["x-total-count"] ?? Number.NaN);
  if (Array.isArray(shown) && total > shown.length) {
    stderr.write(`${stderr.style("dim", `${shown.length} of ${total}`)}\n`);
  }
  if (page?.next !== undefined) stderr.write(`${stderr.style("dim", `More: --cursor ${page.next}`)}\n`);
  return exitCode;
}

interface Page {
  readonly entries: unknown;
  readonly next?: string | undefined;
  readonly total?: number;
}

/** The parts of a response that is one page of a list. */
function pageOf(value: unknown): Page | undefined {
  if (!isObject(value)) return undefined;
  const { entries, next_cursor: next, rows, total } = value;
  if ("rows" in value && typeof total === "number") return { entries: rows, total };
  if (!("entries" in value && "next_cursor" in value)) return undefined;
  return { entries, next: typeof next === "string" ? next : undefined };
}

/** The name of the schema of the response, or of its rows. */
function rowSchemaId(operation: Operation): string | undefined {
  interface Named {
    readonly $id?: string;
    readonly items?: Named;
    readonly anyOf?: readonly Named[];
    readonly properties?: { readonly rows?: Named };
  }
  const success = operation.responses[200] ?? operation.responses[201];
  const schema = (success ?? {}) as Named;
  const first = schema.anyOf?.[0] ?? schema;
  return first.$id ?? (first.properties?.rows ?? first).items?.$id;
}

function propertyNamed(properties: readonly InputProperty[], name: string): InputProperty | undefined {
  return properties.find(({ path }) => path.join(".") === name);
}

function isUpload(operation: Operation): boolean {
  return operation.body !== undefined && "upload" in operation.body;
}

function hasJsonBody(operation: Operation): boolean {
  return operation.body !== undefined && !isUpload(operation);
}

function hasMedia(operation: Operation): boolean {
  return Object.entries(operation.responses).some(
    ([status, response]) => status.startsWith("2") && response !== null && "media" in response,
  );
}
