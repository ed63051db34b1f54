import { readdir, readFile, stat } from "node:fs/promises";
import { isAbsolute, join, normalize, relative, sep } from "node:path";
import type { Command } from "commander";
import { grpcOperations, type NewGrpcSchema } from "@headworks/capture-contract";
import type { Operation } from "@headworks/contract-kit";
import { apiAddress, type ApiRequest, callJson } from "./api-connection.ts";
import { CommandFailure, EXIT, type Invocation } from "./invocation.ts";
import { type GlobalFlags, globalOptions } from "./global-options.ts";
import { present } from "./present.ts";
import { writeJson } from "./terminal.ts";

/** A folder with more files is probably a mistake. */
const MAX_FILES = 500;

/** Adds `weir grpc schemas` with its subcommands. */
export function addGrpcSchemaCommands(group: Command, invocation: Invocation): void {
  const schemas = group.command("schemas").summary("Schemas to decode messages: list, add, reflect, remove");
  schemas.description("Schemas to decode messages. If several have a method, the newest is used.");
  const show = async (command: Command, operation: Operation, input: ApiRequest): Promise<void> => {
    const flags = command.optsWithGlobals<GlobalFlags>();
    const { text, value } = await callJson(apiAddress(flags, invocation.environment), operation, input);
    if (flags.json === true) writeJson(invocation.stdout, text);
    else if (value !== undefined) {
      invocation.stdout.write(present(Array.isArray(value) ? value : [value], "GrpcSchema", invocation.stdout));
    }
  };
  const add = (name: string, summary: string): Command => {
    const command = schemas.command(name).summary(summary).description(summary);
    for (const option of globalOptions()) command.addOption(option);
    return command;
  };
  const list = add("list", "List the schemas, newest first");
  list.action(async () => await show(list, grpcOperations.listGrpcSchemas, {}));

  const added = add("add", "Add .proto files, folders of them, or one descriptor set");
  added
    .argument("<files...>", "Files; a folder adds all .proto files below it")
    .option("-n, --name <name>", "Name of the schema. Default: the name of the first file")
    .addHelpText("after", "\nImports are resolved among the given files and the well-known ones.\n")
    .action(async (files: readonly string[]) => {
      const { name } = added.opts<{ name?: string }>();
      const body = { ...(await readSchemaFiles(files)), ...(name === undefined ? {} : { name }) };
      await show(added, grpcOperations.addGrpcSchema, { body });
    });

  const reflected = add("reflect", "Get a server's schema by server reflection");
  reflected
    .argument("<url>", "https://host:port, or http://host:port for a server without TLS")
    .option("-n, --name <name>", "Name of the schema. Default: the server's name")
    .action(async (url: string) => {
      const { name } = reflected.opts<{ name?: string }>();
      await show(reflected, grpcOperations.reflectGrpcSchema, {
        body: { url, ...(name === undefined ? {} : { name }) },
      });
    });

  const removed = add("remove", "Remove a schema");
  removed.argument("<id>", "The id").action(async (id: string) => {
    await show(removed, grpcOperations.deleteGrpcSchema, { params: { id } });
  });
}

async function readSchemaFiles(paths: readonly string[]): Promise<NewGrpcSchema> {
  const files: { name: string; base64: string }[] = [];
  for (const path of paths) {
    try {
      const found = (await stat(path)).isDirectory() ? await protoFilesBelow(path) : [{ path, name: importName(path) }];
      for (const one of found) files.push({ name: one.name, base64: (await readFile(one.path)).toString("base64") });
    } catch (error) {
      throw new CommandFailure(EXIT.failure, `Cannot read ${path}: ${(error as Error).message}`, { cause: error });
    }
  }
  if (files.length > MAX_FILES) throw new CommandFailure(EXIT.usage, `At most ${MAX_FILES} files can be added at once`);
  const [first] = files;
  if (first === undefined) throw new CommandFailure(EXIT.usage, "No .proto files found");
  if (files.every(({ name }) => name.endsWith(".proto"))) return { files };
  if (files.length > 1) throw new CommandFailure(EXIT.usage, "A descriptor set cannot be combined with other files");
  return { descriptor_set: first.base64, name: first.name };
}

async function protoFilesBelow(folder: string): Promise<{ readonly path: string; readonly name: string }[]> {
  const names = await readdir(folder, { recursive: true });
  return names
    .filter((name) => name.endsWith(".proto"))
    .sort()
    .map((name) => ({ path: join(folder, name), name: name.split(sep).join("/") }));
}

/** The path as other files import it: from here on, without steps upwards. */
function importName(path: string): string {
  const plain = isAbsolute(path) ? relative("/", path) : normalize(path);
  return plain
    .split(sep)
    .filter((part) => part !== ".." && part !== ".")
    .join("/");
}
