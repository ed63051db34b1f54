import { randomBytes } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { makeDirectorySync } from "@headworks/files";
import { type FlatSettings, SETTING_FIELDS, SETTING_INPUTS, type SettingInput, valueAt } from "./setting-inputs.ts";
import { normalizeSetting, settingProblem } from "./setting-rules.ts";
import { StartupError } from "./settings.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Values of flags by their name without dashes; switches as booleans, repeated ones as lists. */
export type Flags = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

const PREFIXES = ["WEIR_", "SERVICE_"] as const;

/** Our fields of the configuration file. Throws {@link StartupError} naming file, field and what is accepted. */
export function valuesOfFile(document: ConfigDocument, path: string): FlatSettings {
  const values: Record<string, unknown> = {};
  const nestedProblem = nestedObjectProblem(document);
  if (nestedProblem !== undefined) throw new StartupError(`${path}: ${nestedProblem}`);
  for (const field of SETTING_FIELDS) {
    const value = valueAt(document, field);
    if (value === undefined) continue;
    const [problem] = field.problems(value);
    if (problem !== undefined) throw new StartupError(`${path}: ${field.name} ${problem}`);
    values[field.name] = checked(field.name, value, (sentence) => `${path}: ${field.name} ${sentence}`);
  }
  return values;
}

/** Keys of the file that are no settings of ours; they are kept. */
export function unknownKeys(document: ConfigDocument): string[] {
  const heads = new Set(SETTING_FIELDS.map((field) => field.path[0]));
  const known = new Set(SETTING_FIELDS.map((field) => field.name));
  return Object.entries(document).flatMap(([key, value]) => {
    if (known.has(key)) return [];
    if (!heads.has(key)) return [key];
    return Object.keys(value as object)
      .map((inner) => `${key}.${inner}`)
      .filter((name) => !known.has(name));
  });
}

function nestedObjectProblem(document: ConfigDocument): string | undefined {
  for (const { path } of SETTING_FIELDS) {
    const [head = "", tail] = path;
    const value = document[head];
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    if (tail !== undefined && value !== undefined && !isObject) return `${head} must be an object`;
  }
  return undefined;
}

/** Settings from the environment; `WEIR_…` wins over `SERVICE_…`. Throws {@link StartupError} with the variable. */
export function valuesOfEnvironment(environment: Environment): FlatSettings {
  const values: Record<string, unknown> = {};
  for (const input of SETTING_INPUTS) {
    const name = PREFIXES.flatMap((prefix) => input.environment.map((suffix) => prefix + suffix)).find(
      (candidate) => environment[candidate] !== undefined,
    );
    if (name === undefined) continue;
    take(values, input, environment[name] ?? "", name);
  }
  return enableUpstream(values);
}

/** Settings from the command line. Throws {@link StartupError} with the flag. */
export function valuesOfFlags(flags: Flags): FlatSettings {
  const values: Record<string, unknown> = {};
  const known = new Set(SETTING_INPUTS.map((input) => input.flag));
  const unknown = Object.keys(flags).find((name) => flags[name] !== undefined && !known.has(name));
  if (unknown !== undefined) throw new StartupError(`--${unknown} is not a setting`);
  for (const input of SETTING_INPUTS) {
    const given = input.flag === null ? undefined : flags[input.flag];
    if (given === undefined) continue;
    take(values, input, Array.isArray(given) ? given.join(",") : String(given), `--${input.flag}`);
  }
  return enableUpstream(values);
}

function take(values: Record<string, unknown>, input: SettingInput, text: string, label: string): void {
  const reading = input.read(text);
  if ("problem" in reading) throw new StartupError(`${label} ${reading.problem}`);
  for (const [field, value] of Object.entries(reading.values)) {
    values[field] = checked(field, value, (sentence) => `${label} ${sentence}`);
  }
}

function checked(field: string, value: unknown, sentence: (problem: string) => string): unknown {
  const normal = normalizeSetting(field, value);
  const problem = settingProblem(field, normal);
  if (problem !== undefined) throw new StartupError(sentence(problem));
  return normal;
}

/** A user who names only an upstream proxy on the command line expects traffic to use it. */
function enableUpstream(values: Record<string, unknown>): FlatSettings {
  if (values["upstream_proxy.host"] === undefined || values["upstream_proxy.host"] === "") return values;
  return { "upstream_proxy.enabled": true, ...values };
}

/** The document as it stands in the file, our fields and foreign ones. */
export type ConfigDocument = Record<string, unknown>;

/** `<data_dir>/config.json` */
export function configPath(dataDir: string): string {
  return join(dataDir, "config.json");
}

/**
 * Reads the file; an absent one is an empty document. Throws {@link StartupError} naming file and position when it
 * cannot be read or is no JSON object: a file that a person edited is never overwritten or ignored.
 */
export function readConfigFile(path: string): ConfigDocument {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new StartupError(`Cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
  let document: unknown;
  try {
    document = JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  } catch (error) {
    throw new StartupError(`${path} is not valid JSON: ${jsonProblem(text, error as SyntaxError)}`, { cause: error });
  }
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    throw new StartupError(`${path} must hold a JSON object`);
  }
  return document as ConfigDocument;
}

/** The parser's message with line and column instead of an offset. */
function jsonProblem(text: string, error: SyntaxError): string {
  const offset = /at position (\d+)/.exec(error.message)?.[1];
  const reason = error.message.replace(/ (?:in JSON )?at position \d+.*$/s, "");
  if (offset === undefined) return text.trim() === "" ? "the file is empty" : reason;
  const before = text.slice(0, Number(offset)).split("\n");
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: ${reason}`;
}

/**
 * Replaces the file atomically: a reader finds the whole old or the whole new document, also after a power cut.
 * Mode 0600, because it holds passwords. A link stays, and what it leads to is replaced.
 */
export function writeConfigFile(path: string, document: ConfigDocument): void {
  const target = linkTarget(path);
  const directory = dirname(target);
  makeDirectorySync(directory);
  const temporary = `${target}.${process.pid}-${randomBytes(4).toString("hex")}.tmp`;
  try {
    const file = openSync(temporary, "wx", 0o600);
    try {
      const bytes = Buffer.from(`${JSON.stringify(document, null, 2)}\n`);
      for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncDirectory(directory);
}

/** Where a name leads, also where nothing is yet. */
function linkTarget(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  try {
    return linkTarget(resolve(realpathSync(dirname(path)), readlinkSync(path)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return path;
  }
}

/** Makes the rename itself durable. Windows cannot open directories and keeps renames in its journal. */
function syncDirectory(directory: string): void {
  if (process.platform === "win32") return;
  const handle = openSync(directory, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
