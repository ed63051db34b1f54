import type { Command } from "commander";
import { scriptsOperations, type ScriptValidation } from "@headworks/capture-contract";
import { apiAddress, callJson } from "./api-connection.ts";
import { readTextFile } from "./call.ts";
import { CommandFailure, EXIT, type Invocation, type Outcome } from "./invocation.ts";
import { type GlobalFlags, globalOptions } from "./global-options.ts";
import { visibleText, writeJson } from "./terminal.ts";

interface ValidateFlags extends GlobalFlags {
  readonly file?: string;
  readonly inline?: string;
}

/** Adds `weir scripts validate`. */
export function addScriptValidateCommand(group: Command, invocation: Invocation, outcome: Outcome): void {
  const summary = "Check the syntax of a source without running it";
  const command = group
    .command("validate")
    .summary(summary)
    .description(`${summary}. A problem is printed as FILE:LINE:COLUMN: MESSAGE, and the exit code is 1.`)
    .option("--file <file>", "The source from a file; `-` reads standard input")
    .option("-i, --inline <source>", "The source");
  for (const option of globalOptions()) command.addOption(option);
  command.action(async () => {
    outcome.exitCode = await validate(invocation, command.optsWithGlobals());
  });
}

async function validate(invocation: Invocation, flags: ValidateFlags): Promise<number> {
  const { file, inline, json } = flags;
  if ((file === undefined) === (inline === undefined)) {
    throw new CommandFailure(EXIT.usage, "Give either --file or --inline");
  }
  const source = file === undefined ? (inline ?? "") : await readTextFile(file, invocation);
  const address = apiAddress(flags, invocation.environment);
  const { text, value } = await callJson(address, scriptsOperations.validateScript, { body: { source } });
  const result = value as ScriptValidation;
  const { stdout } = invocation;
  if (json === true) writeJson(stdout, text);
  else stdout.write(`${visibleText(validationText(result, sourceName(file)))}\n`);
  return result.valid ? EXIT.ok : EXIT.failure;
}

function sourceName(file: string | undefined): string {
  return file === undefined ? "inline" : file === "-" ? "stdin" : file;
}

function validationText({ valid, error, line, column, hooks = [] }: ScriptValidation, name: string): string {
  if (valid) return hooks.length === 0 ? "Valid; it declares no hook" : `Valid: ${hooks.join(", ")}`;
  const place = [name, line, column].filter((part) => part !== undefined).join(":");
  return `${place}: ${error ?? "cannot be compiled"}`;
}
