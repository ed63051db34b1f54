import { InvalidArgumentError, type Command } from "commander";

/** What options and arguments call their values that name a file. */
const FILES: ReadonlySet<string> = new Set(["file", "old", "new"]);

/** An empty path, as of a variable that is not set, must not be taken for the default. */
export function refuseEmptyPaths(command: Command): void {
  for (const option of command.options) {
    if (FILES.has(/<(\w+)>$/.exec(option.flags)?.[1] ?? "")) option.argParser(named);
  }
  for (const argument of command.registeredArguments) {
    if (FILES.has(argument.name())) argument.argParser(named);
  }
  for (const inner of command.commands) refuseEmptyPaths(inner);
}

function named(value: string): string {
  if (value === "") throw new InvalidArgumentError("It must name a file.");
  return value;
}
