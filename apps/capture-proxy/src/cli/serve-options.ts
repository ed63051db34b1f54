import type { Command } from "commander";
import { Option } from "commander";
import { SETTING_FIELDS } from "#settings/setting-fields.ts";
import { SETTING_INPUTS } from "#settings/setting-inputs.ts";
import type { SettingInput } from "#settings/setting-inputs.ts";
import { valuesOfFlags } from "#settings/setting-sources.ts";
import type { Flags } from "#settings/setting-sources.ts";
import { StartupError } from "#settings/startup-error.ts";
import { CommandFailure, EXIT } from "./exit-codes.ts";

/** One-letter forms of settings' flags. */
const LETTERS: Readonly<Record<string, string>> = {
  "proxy-port": "p",
  "api-port": "a",
  host: "H",
  "max-requests": "m",
  verbose: "v",
};

const defaults = new Map(SETTING_FIELDS.map((field) => [field.name, field.default]));

/** Adds a flag for every setting that has one; name, default, variable and description come from the settings. */
export function addSettingOptions(command: Command): void {
  for (const input of SETTING_INPUTS) {
    if (input.flag === null) continue;
    for (const option of optionsOf(input, input.flag)) command.addOption(option);
  }
}

/**
 * What was given on the command line, by flag name without dashes, as the settings take it. Throws
 * {@link CommandFailure} for a value that no setting takes: the command line is wrong then, before anything is tried.
 */
export function settingFlags(command: Command): Flags {
  const flags: Record<string, string | number | boolean | readonly string[]> = {};
  for (const input of SETTING_INPUTS) {
    if (input.flag === null) continue;
    const isNegative = input.flag.startsWith("no-");
    const key = new Option(`--${input.flag}`).attributeName();
    if (command.getOptionValueSource(key) !== "cli") continue;
    const value = command.getOptionValue(key) as string | boolean | readonly string[];
    // Commander reads `--no-https` as https = false; the setting's flag is called no-https.
    flags[input.flag] = isNegative ? value === false : value;
  }
  try {
    valuesOfFlags(flags);
  } catch (error) {
    throw error instanceof StartupError ? new CommandFailure(EXIT.usage, error.message, { cause: error }) : error;
  }
  return flags;
}

function optionsOf(input: SettingInput, flag: string): Option[] {
  const letter = LETTERS[flag] === undefined ? "" : `-${LETTERS[flag]}, `;
  const text = `${input.description}${facts(input)}`;
  if (input.takes === "value") {
    const option = new Option(`${letter}--${flag} <${input.placeholder}>`, text);
    // For help and completion; the settings reject other values.
    if (input.choices !== undefined) option.argChoices = [...input.choices];
    return [option];
  }
  if (input.takes === "list") {
    const collect = (value: string, previous: readonly string[] | undefined): readonly string[] => [
      ...(previous ?? []),
      value,
    ];
    return [new Option(`${letter}--${flag} <${input.placeholder}>`, text).argParser(collect)];
  }
  if (flag.startsWith("no-")) return [new Option(`--${flag}`, text)];
  return [new Option(`${letter}--${flag}`, text), new Option(`--no-${flag}`, `The opposite of --${flag}`).hideHelp()];
}

function facts(input: SettingInput): string {
  const parts: string[] = [];
  const [field] = input.fields;
  const value =
    input.fields.length === 1 && field !== undefined && !input.flag?.startsWith("no-")
      ? defaults.get(field)
      : undefined;
  if (input.takes === "list") parts.push("repeatable");
  if (value === true) parts.push(`on; --no-${input.flag ?? ""} switches it off`);
  else if (typeof value === "number" || (typeof value === "string" && value !== "")) parts.push(`default ${value}`);
  parts.push(`env WEIR_${input.environment[0] ?? ""}`);
  return ` (${parts.join("; ")})`;
}
