import type { Command } from "commander";
import { PropertyOption } from "./schema-options.ts";
import { WRITTEN_EXAMPLES } from "./written-examples.ts";

/** Has the help of a command and of all commands below it end with examples; `path` are its words. */
export function addExamples(command: Command, path: string): void {
  const lines = WRITTEN_EXAMPLES[path] ?? [madeExample(command, path)];
  command.addHelpText("after", `\nExamples:\n${lines.map((line) => `  ${line}\n`).join("")}`);
  for (const below of command.commands) addExamples(below, `${path} ${below.name()}`);
}

/** The command with what it cannot do without. */
function madeExample(command: Command, path: string): string {
  const words = command.registeredArguments.map(
    (argument) => argument.argChoices?.[0] ?? SAMPLES[argument.name()] ?? placeholder(argument.name()),
  );
  const flags = command.options
    .filter((option) => option instanceof PropertyOption)
    .filter(({ isNeeded }) => isNeeded)
    .map((option) => `${option.long} ${sampleOf(option)}`.trimEnd());
  return ["weir", path, ...words, ...flags].join(" ");
}

/** Values that read better than their names. */
const SAMPLES: Readonly<Record<string, string>> = {
  pattern: "'*.tracker.example'",
  name: "checkout",
  side: "response",
  ordinal: "3",
};

function sampleOf(option: PropertyOption): string {
  if (option.isBoolean()) return "";
  const { path, schema } = option.property;
  const name = path.at(-1) ?? "";
  const isNumber = schema.type === "integer" || schema.type === "number";
  return option.argChoices?.[0] ?? SAMPLES[name] ?? (isNumber ? String(schema.minimum ?? 1) : placeholder(name));
}

/** `entry_ids` takes an id, and so do the others of its kind. */
function placeholder(name: string): string {
  return /(?:^|_)ids?$/.test(name) ? "ID" : name.toUpperCase();
}
