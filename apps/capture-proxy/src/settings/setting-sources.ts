import type { ConfigDocument } from "./config-file.ts";
import { SETTING_FIELDS, valueAt } from "./setting-fields.ts";
import type { FlatSettings } from "./setting-fields.ts";
import { SETTING_INPUTS } from "./setting-inputs.ts";
import type { SettingInput } from "./setting-inputs.ts";
import { normalizeSetting, settingProblem } from "./setting-rules.ts";
import { StartupError } from "./startup-error.ts";

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

/** What the environment sets. `WEIR_…` wins over `SERVICE_…`. Throws {@link StartupError} naming the variable. */
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

/** What the command line sets. Throws {@link StartupError} naming the flag. */
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

/** Whoever names an upstream proxy on the command line and nothing else expects traffic to take it, not to pass it by. */
function enableUpstream(values: Record<string, unknown>): FlatSettings {
  if (values["upstream_proxy.host"] === undefined || values["upstream_proxy.host"] === "") return values;
  return { "upstream_proxy.enabled": true, ...values };
}
