import { readFileSync } from "node:fs";
import { Argument, type Command } from "commander";
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

/** Adds a subcommand for every operation of a slice that the command line offers, and the shortcuts. */
export function addOperationCommands(group: Command, slice: string, invocation: Invocation, outcome: Outcome): void {
  const table = (operations as Readonly<Record<string, Operations>>)[slice] ?? {};
  for (const [name, operation] of Object.entries(table)) {
    if (operation.expose?.cli === false) continue;
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
    addPropertyOptions(command, property, shape.flags?.[name], operation.bodyOptional === true);
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

/** Calls the operation with the parameters of the command line and prints the response. */
async function runOperation(command: Command, facts: OperationCommand, invocation: Invocation): Promise<number> {
  const given = command.optsWithGlobals<{ apiUrl?: string; timeout?: string; json?: boolean; output?: string }>();
  const address = apiAddress(given, invocation.environment);
  const input = await requestOf(command, facts, address, invocation);
  if (hasMedia(facts.operation)) {
    await saveResponse(await callApi(address, facts.operation, input), given.output, invocation);
  } else await showJson(address, facts, input, given.json === true, invocation);
  return EXIT.ok;
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
    const given = positional.includes(name) ? words.shift() : givenValue(command, property, shape.flags?.[name]);
    if (given === undefined) continue;
    const value = await withEntryIds(address, property, given);
    if (property.location === "query") query[name] = value;
    else if (bodies.value !== undefined && !isObject(bodies.value)) {
      throw new CommandFailure(EXIT.usage, "--body must be a JSON object if it is combined with other flags");
    } else bodies.value = withValue(bodies.value, property.path, value);
  }
  refuseMissing(properties, query, bodies.value, operation);
  return {
    params,
    query,
    ...(shape.headers === undefined ? {} : { headers: shape.headers }),
    ...(bodies.value === undefined && hasJsonBody(operation) && operation.bodyOptional !== true ? { body: {} } : {}),
    ...(bodies.value === undefined ? {} : { body: bodies.value }),
    ...(isUpload(operation) ? { upload: await openUpload(words.shift() ?? "-", invocation) } : {}),
  };
}

function refuseMissing(
  properties: readonly InputProperty[],
  query: Readonly<Record<string, unknown>>,
  body: unknown,
  operation: Operation,
): void {
  const given = { ...query, ...(isObject(body) ? body : {}) };
  const isBodyLeftOut = body === undefined && operation.bodyOptional === true;
  const missing = properties
    .filter((property) => property.isRequired && !(property.location === "body" && isBodyLeftOut))
    .map(({ path }) => path.join("-"))
    .filter((name) => !Object.hasOwn(given, name))
    .map((name) => `--${name.replaceAll("_", "-")}`);
  if (missing.length > 0) {
    throw new CommandFailure(EXIT.usage, `${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} required`);
  }
}

async function readBody(text: string, invocation: Invocation): Promise<unknown> {
  const source = text === "-" ? "standard input" : text.startsWith("@") ? text.slice(1) : "--body";
  let json = text;
  try {
    if (text === "-") json = await readText(invocation.stdin as AsyncIterable<Uint8Array>);
    else if (text.startsWith("@")) json = readFileSync(text.slice(1), "utf8");
  } catch (error) {
    throw new CommandFailure(EXIT.failure, `Cannot read ${source}: ${(error as Error).message}`, { cause: error });
  }
  try {
    return readJson(json);
  } catch (error) {
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

async function showJson(
  address: ApiAddress,
  { operation, shape }: OperationCommand,
  input: ApiRequest,
  isRaw: boolean,
  invocation: Invocation,
): Promise<void> {
  const { stdout, stderr } = invocation;
  const { text, value, headers } = await callJson(address, operation, input);
  if (isRaw) {
    if (text !== "") writeJson(stdout, text);
    return;
  }
  if (value === undefined) {
    stderr.write("Done\n");
    return;
  }
  if (shape.prints !== undefined && isObject(value)) {
    const result = String(value[shape.prints]);
    stdout.write(`${stdout.isTty ? visibleText(result, true) : result}\n`);
    return;
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
