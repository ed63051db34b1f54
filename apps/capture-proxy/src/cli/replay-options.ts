import { readFileSync } from "node:fs";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type DiffOptions, REPLAY_LIMITS, type ReplayModifications } from "@headworks/capture-contract";
import { CommandFailure, EXIT } from "./invocation.ts";

/** Flags for changes to the request that is resent. */
export interface ModificationFlags {
  readonly url?: string;
  readonly method?: string;
  readonly setHeader?: readonly (readonly [string, string])[];
  readonly removeHeader?: readonly string[];
  readonly text?: string;
  readonly bodyFile?: string;
  readonly followRedirects?: boolean;
  readonly maxRedirects?: number;
  readonly var?: readonly (readonly [string, string])[];
}

/** Flags that exclude parts of the messages from a comparison. */
export interface DiffFlags {
  readonly ignoreHeader?: readonly string[];
  readonly ignorePath?: readonly string[];
  readonly shape?: boolean;
}

/** Adds the flags of modifications and variables. */
export function addModificationOptions(command: Command): void {
  command
    .option("--url <url>", "New URL; Host is adjusted")
    .option("-X, --method <method>", "New method")
    .addOption(repeated("-H, --set-header <field>", "`Name: value` to add, or to replace by name; repeatable", field))
    .addOption(repeated("--remove-header <name>", "A field to remove; repeatable", String))
    .option("--text <text>", "New body")
    .option("--body-file <file>", "New body, from a file")
    .option("--follow-redirects", "Follow redirects")
    .addOption(
      new Option("--max-redirects <count>", "Maximum number of redirects (default 10)").argParser(
        wholeNumber(0, REPLAY_LIMITS.redirects),
      ),
    )
    .addOption(repeated("--var <name=value>", "Value for `{{name}}` in URL, fields and body; repeatable", variable));
}

/** Adds the flags of comparisons. */
export function addDiffOptions(command: Command): void {
  command
    .addOption(
      repeated(
        "--ignore-header <name>",
        "A header field to ignore, `*` for any characters; replaces the defaults (Date and similar ones); repeatable",
        String,
      ),
    )
    .addOption(repeated("--ignore-path <path>", "A path in JSON bodies to ignore, such as `$..id`; repeatable", String))
    .option("--shape", "Compare only the structure of JSON bodies (members and types), not values");
}

/** An option that may be given several times; its value is a list. */
export function repeated<T>(flags: string, description: string, read: (text: string) => T): Option {
  return new Option(flags, description).argParser((text: string, previous: readonly T[] | undefined) => [
    ...(previous ?? []),
    read(text),
  ]);
}

function field(text: string): [string, string] {
  const colon = text.indexOf(":");
  if (colon < 1) throw new InvalidArgumentError("It must be `Name: value`.");
  return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
}

function variable(text: string): [string, string] {
  const equals = text.indexOf("=");
  if (equals < 1) throw new InvalidArgumentError("It must be `name=value`.");
  return [text.slice(0, equals), text.slice(equals + 1)];
}

/** Reads a whole number within bounds. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== "" && Number.isInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}

/** The request members that the flags change, with their values. */
export function modificationsOf(flags: ModificationFlags): {
  readonly modifications: ReplayModifications;
  readonly variables: Record<string, string>;
} {
  const { url, method, setHeader, removeHeader, followRedirects, maxRedirects } = flags;
  if (flags.text !== undefined && flags.bodyFile !== undefined) {
    throw new CommandFailure(EXIT.usage, "--text and --body-file exclude each other");
  }
  const body = flags.bodyFile === undefined ? flags.text : fileText(flags.bodyFile);
  return {
    modifications: {
      ...(url === undefined ? {} : { url }),
      ...(method === undefined ? {} : { method }),
      ...(setHeader === undefined ? {} : { headers: Object.fromEntries(setHeader) }),
      ...(removeHeader === undefined ? {} : { remove_headers: [...removeHeader] }),
      ...(body === undefined ? {} : { body }),
      ...(followRedirects === undefined && maxRedirects === undefined ? {} : { follow_redirects: true }),
      ...(maxRedirects === undefined ? {} : { max_redirects: maxRedirects }),
    },
    variables: Object.fromEntries(flags.var ?? []),
  };
}

/** The bytes of a file as the API takes them. */
function fileText(path: string): string {
  try {
    return `base64:${readFileSync(path).toString("base64")}`;
  } catch (error) {
    throw new CommandFailure(EXIT.failure, `Cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** Parts that the flags exclude from a comparison. */
export function diffOptionsOf({ ignoreHeader, ignorePath, shape }: DiffFlags): DiffOptions {
  return {
    ...(ignoreHeader === undefined ? {} : { ignore_headers: [...ignoreHeader] }),
    ...(ignorePath === undefined ? {} : { ignore_paths: [...ignorePath] }),
    ...(shape === undefined ? {} : { shape }),
  };
}
