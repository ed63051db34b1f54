import { networkInterfaces } from "node:os";
import { isDeepStrictEqual } from "node:util";
import type { ConfigField, ConfigPatch, Settings } from "@headworks/capture-contract";
import { parseAddress } from "@headworks/host-patterns";
import { ApiError, type ErrorDetail, validationError } from "#api/api-error.ts";
import { type DataPaths, defaultDataPaths, outputProblem, type OwnPaths, snapshotProblem } from "./data-paths.ts";
import {
  environmentName,
  flagName,
  type FlatSettings,
  nested,
  SETTING_FIELDS,
  SETTING_SECTIONS,
  type SettingField,
  valueAt,
} from "./setting-inputs.ts";
import { normalizeSetting, type RuleProblem, settingProblem, settingsProblems } from "./setting-rules.ts";
import {
  type ConfigDocument,
  configPath,
  type Environment,
  type Flags,
  readConfigFile,
  unknownKeys,
  valuesOfEnvironment,
  valuesOfFile,
  valuesOfFlags,
  writeConfigFile,
} from "./setting-sources.ts";
import { type ChangesOfSection, type SettingsStore, StartupError } from "./settings.ts";

export const REDACTED = "[REDACTED]";

/** Bridges and virtual pairs of container engines: no phone can reach them. */
const CONTAINER_INTERFACE = /^(?:docker|br-|veth|virbr|cni|flannel|podman)/;

/** Home and office networks in the order in which phones are likely to be in them. */
const PRIVATE_RANGES: readonly RegExp[] = [/^192\.168\./, /^10\./, /^172\.(?:1[6-9]|2\d|3[01])\./];

/** The part of a logger that is used here. */
interface SettingsLog {
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

export interface LoadOptions {
  readonly dataDir: string;
  /** Paths outside of the data directory. */
  readonly dataPaths?: DataPaths | undefined;
  readonly environment: Environment;
  readonly flags: Flags;
  readonly log: SettingsLog;
}

type Source = ConfigField["source"];

/**
 * Reads the settings: schema defaults, below `<data_dir>/config.json`, below the environment, below flags. Throws
 * {@link StartupError} with one sentence for the first value that cannot be used.
 */
export function loadSettings(options: LoadOptions): SettingsStore {
  const path = configPath(options.dataDir);
  const document = readConfigFile(path);
  const layers: readonly (readonly [Source, FlatSettings])[] = [
    ["default", Object.fromEntries(SETTING_FIELDS.map((field) => [field.name, field.default]))],
    ["file", valuesOfFile(document, path)],
    ["environment", valuesOfEnvironment(options.environment)],
    ["flag", valuesOfFlags(options.flags)],
  ];
  const values: Record<string, unknown> = {};
  const sources = new Map<string, Source>();
  for (const [source, layer] of layers) {
    for (const [name, value] of Object.entries(layer)) {
      values[name] = value;
      sources.set(name, source);
    }
  }
  const [problem] = settingsProblems(frozen(values));
  if (problem) throw new StartupError(`The setting ${problem.field} ${problem.message}`);
  const unknown = unknownKeys(document);
  if (unknown.length > 0) {
    options.log.warn({ path, keys: unknown }, "config.json has keys that are no settings; they are kept");
  }
  const { dataDir, dataPaths = defaultDataPaths(dataDir) } = options;
  return new FileSettings({ path, log: options.log, paths: { ...dataPaths, dataDir } }, values, sources);
}

function frozen(values: FlatSettings): Settings {
  const settings = nested(values);
  for (const value of Object.values(settings)) if (typeof value === "object" && value !== null) Object.freeze(value);
  return Object.freeze(settings) as Settings;
}

/** Read-only fields of what GET shows; they may come back and are not changes. */
const DERIVED = new Set(["socks_auth_enabled", "access_control_enabled", "shown_host", "upstream_proxy.auth_enabled"]);

interface FileSettingsParts {
  readonly path: string;
  readonly log: SettingsLog;
  readonly paths: OwnPaths;
}

class FileSettings implements SettingsStore {
  running: Settings;
  configured: Settings;
  readonly #path: string;
  readonly #log: SettingsLog;
  readonly #paths: OwnPaths;
  #values: FlatSettings;
  #sources: ReadonlyMap<string, Source>;
  readonly #atStart: FlatSettings;
  readonly #listeners = new Set<(running: Settings, previous: Settings) => void>();

  constructor(parts: FileSettingsParts, values: FlatSettings, sources: ReadonlyMap<string, Source>) {
    this.#path = parts.path;
    this.#log = parts.log;
    this.#paths = parts.paths;
    this.#values = values;
    this.#atStart = values;
    this.#sources = sources;
    this.configured = frozen(values);
    this.running = this.configured;
  }

  check(change: ConfigPatch): readonly string[] {
    return [...this.#checked(change).changes.keys()];
  }

  patch(change: ConfigPatch): void {
    const { changes, values, configured } = this.#checked(change);
    if (changes.size === 0) return;
    this.#persist(changes);
    const previous = this.running;
    this.#values = values;
    const ofFile = [...changes.keys()].filter((name) => this.#givenBy(name) === undefined);
    this.#sources = new Map([...this.#sources, ...ofFile.map((name) => [name, "file"] as const)]);
    this.configured = configured;
    this.running = frozen(this.#runningValues());
    this.#publish(previous);
  }

  /** The source of a value that overrides the file at each start. */
  #givenBy(name: string): ConfigField["overridden_by"] {
    const source = this.#sources.get(name);
    return source === "flag" || source === "environment" ? source : undefined;
  }

  #checked(change: ConfigPatch): {
    readonly changes: ReadonlyMap<string, unknown>;
    readonly values: FlatSettings;
    readonly configured: Settings;
  } {
    const changes = changedFields(change, this.#values);
    const values = { ...this.#values, ...Object.fromEntries(changes) };
    const configured = frozen(values);
    const problems = changes.size === 0 ? [] : [...settingsProblems(configured), ...this.#outputProblems(changes)];
    if (problems.length > 0) {
      throw validationError(problems.map(({ field, message }) => ({ path: bodyPath(field), message })));
    }
    return { changes, values, configured };
  }

  outputProblem(directory: string, of: "mirror" | "snapshots" = "mirror"): string | undefined {
    return (of === "mirror" ? outputProblem : snapshotProblem)(directory, this.#paths);
  }

  /** Of changes alone: a start with a directory that may not be used is a start without a mirror, or without snapshots. */
  #outputProblems(changes: ReadonlyMap<string, unknown>): RuleProblem[] {
    const fields = [
      ["mirror.output_dir", "mirror"],
      ["auto_save.output_dir", "snapshots"],
    ] as const;
    return fields.flatMap(([field, of]) => {
      const directory = changes.get(field);
      const message = typeof directory === "string" ? this.outputProblem(directory, of) : undefined;
      return message === undefined ? [] : [{ field, message }];
    });
  }

  onChange(listener: (running: Settings, previous: Settings) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  describe(): ConfigField[] {
    return SETTING_FIELDS.map((field) => this.#describeField(field));
  }

  changesOf(section: string): ChangesOfSection {
    const prefix = `${section}.`;
    const fields = this.describe()
      .filter(({ name }) => name.startsWith(prefix))
      .map((field) => ({ ...field, name: field.name.slice(prefix.length) }));
    return {
      restartPending: fields.filter(({ restart_pending: isPending }) => isPending).map(({ name }) => name),
      overriddenBy: Object.fromEntries(
        fields.flatMap(({ name, overridden_by: by }) => (by === undefined ? [] : [[name, by] as const])),
      ),
    };
  }

  shownHost(): string {
    return shownHost(this.configured, networkInterfaces());
  }

  #describeField(field: SettingField): ConfigField {
    const value = this.#values[field.name];
    const running = valueAt(this.running, field);
    const givenBy = this.#givenBy(field.name);
    const { default: _default, description: _description, ...schema } = field.schema as Record<string, unknown>;
    return {
      name: field.name,
      applies: field.applies,
      source: this.#sources.get(field.name) ?? "default",
      default: redact(field.schema, field.default),
      value: redact(field.schema, value),
      running: redact(field.schema, running),
      restart_pending: givenBy === undefined && !isDeepStrictEqual(value, running),
      ...(givenBy === undefined || isDeepStrictEqual(value, this.#atStart[field.name])
        ? {}
        : { overridden_by: givenBy }),
      ...(field.description === undefined ? {} : { description: field.description }),
      environment: environmentName(field),
      flag: flagName(field),
      schema,
    };
  }

  /** Fields that apply after a restart keep the value the process started with. */
  #runningValues(): FlatSettings {
    return Object.fromEntries(
      SETTING_FIELDS.map(({ name, applies }) => [
        name,
        applies === "restart" ? this.#atStart[name] : this.#values[name],
      ]),
    );
  }

  /** Writes only what was changed through the API: values of flags and of the environment do not creep into the file. */
  #persist(changes: ReadonlyMap<string, unknown>): void {
    try {
      const document = withValues(readConfigFile(this.#path), changes);
      writeConfigFile(this.#path, document);
    } catch (cause) {
      this.#log.error({ err: cause, path: this.#path }, "settings could not be saved");
      const reason =
        cause instanceof StartupError ? cause.message : ((cause as NodeJS.ErrnoException).code ?? "unknown error");
      throw new ApiError("SERVICE_UNAVAILABLE", `The settings cannot be saved: ${reason}`, { cause });
    }
  }

  #publish(previous: Settings): void {
    for (const listener of this.#listeners) {
      try {
        listener(this.running, previous);
      } catch (error) {
        this.#log.error({ err: error }, "a listener failed to take over changed settings");
      }
    }
  }
}

/** The fields that differ from the values in force, in normal spelling. Throws 400 naming every bad one. */
function changedFields(change: ConfigPatch, current: FlatSettings): Map<string, unknown> {
  const details: ErrorDetail[] = [];
  const changes = new Map<string, unknown>();
  for (const [name, value] of withCleared(givenFields(change))) {
    const field = SETTING_FIELDS.find((candidate) => candidate.name === name);
    if (!field) {
      details.push({ path: bodyPath(name), message: "unknown property" });
      continue;
    }
    const normal = normalizeSetting(name, value);
    const problem = field.problems(value)[0] ?? field.problems(normal)[0] ?? settingProblem(name, normal);
    if (problem !== undefined) details.push({ path: bodyPath(name), message: problem });
    else if (!isDeepStrictEqual(normal, current[name])) changes.set(name, normal);
  }
  if (details.length > 0) throw validationError(details);
  return changes;
}

function givenFields(change: ConfigPatch): Map<string, unknown> {
  const given = new Map<string, unknown>();
  for (const [key, value] of Object.entries(change)) {
    if (!SETTING_SECTIONS.has(key)) given.set(key, value);
    else for (const [inner, innerValue] of Object.entries(value as object)) given.set(`${key}.${inner}`, innerValue);
  }
  for (const name of Array.from(given.keys())) {
    if (DERIVED.has(name) || given.get(name) === undefined) given.delete(name);
  }
  return given;
}

/** A password makes no sense without its user: clearing the user clears both. */
function withCleared(given: Map<string, unknown>): Map<string, unknown> {
  for (const [user, password] of [
    ["socks_auth_username", "socks_auth_password"],
    ["upstream_proxy.auth_username", "upstream_proxy.auth_password"],
  ] as const) {
    if (given.get(user) === "") given.set(user, null);
    if (given.get(user) === null && !given.has(password)) given.set(password, null);
  }
  return given;
}

function withValues(document: ConfigDocument, changes: ReadonlyMap<string, unknown>): ConfigDocument {
  const result: ConfigDocument = { ...document };
  for (const [name, value] of changes) {
    const [head = "", tail] = name.split(".");
    if (tail === undefined) result[head] = value;
    else result[head] = { ...(result[head] as object | undefined), [tail]: value };
  }
  return result;
}

const bodyPath = (field: string): string => `body/${field.replace(/\./g, "/")}`;

/** One address of a network interface, as `os.networkInterfaces` lists it. */
export interface InterfaceAddress {
  readonly address: string;
  readonly family: string;
  readonly internal: boolean;
}

/**
 * The address to give to devices: `public_ip`, the private IPv4 address of this machine (192.168 before 10 before
 * 172.16–31), or the address the proxy is bound to.
 */
export function shownHost(
  settings: { readonly public_ip: string | null; readonly host: string },
  interfaces: Readonly<Record<string, readonly InterfaceAddress[] | undefined>>,
): string {
  if (settings.public_ip !== null) return settings.public_ip;
  const addresses = Object.entries(interfaces)
    .filter(([name]) => !CONTAINER_INTERFACE.test(name))
    .flatMap(([, list]) => list ?? [])
    .filter((entry) => entry.family === "IPv4" && !entry.internal && parseAddress(entry.address)?.version === 4)
    .map((entry) => entry.address);
  for (const range of PRIVATE_RANGES) {
    const found = addresses.find((address) => range.test(address));
    if (found !== undefined) return found;
  }
  return settings.host;
}

interface RedactableSchema {
  readonly properties?: Readonly<Record<string, RedactableSchema>>;
  readonly items?: RedactableSchema;
  readonly "x-secret"?: boolean;
}

/** A copy of `value` in which everything that `schema` marks with `x-secret` is `[REDACTED]`; absent secrets stay null. */
export function redact(schema: unknown, value: unknown): unknown {
  const facts = (schema ?? {}) as RedactableSchema;
  if (facts["x-secret"] === true) return value === null || value === undefined ? value : REDACTED;
  if (Array.isArray(value)) return value.map((entry) => redact(facts.items, entry));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, redact(facts.properties?.[key], entry)]));
}
