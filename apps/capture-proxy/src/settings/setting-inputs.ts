import type { TSchema } from "typebox";
import { Settings } from "@headworks/capture-contract";
import { compileValueValidator } from "@headworks/contract-kit/server";
import { parseHostPort } from "@headworks/host-patterns";

type Applies = "now" | "next-cycle" | "restart";

/** One leaf of the settings: `proxy_port`, `upstream_proxy.host`. */
export interface SettingField {
  /** Dotted for nested fields. */
  readonly name: string;
  readonly path: readonly string[];
  readonly schema: TSchema;
  readonly applies: Applies;
  readonly isSecret: boolean;
  readonly default: unknown;
  readonly description: string | undefined;
  /** Sentences about what is wrong with a value; empty when it is a good one. */
  readonly problems: (value: unknown) => readonly string[];
}

interface SchemaFacts {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly default?: unknown;
  readonly description?: string;
  readonly "x-applies"?: Applies;
  readonly "x-secret"?: boolean;
}

/** Every leaf of the settings schema, in its order. */
export const SETTING_FIELDS: readonly SettingField[] = leaves(Settings.properties, []);

/** Names of the settings that are objects of others: `upstream_proxy`. */
export const SETTING_SECTIONS: ReadonlySet<string> = new Set(
  SETTING_FIELDS.flatMap(({ path: [head = "", tail] }) => (tail === undefined ? [] : [head])),
);

const byName = new Map(SETTING_FIELDS.map((field) => [field.name, field]));

export function settingField(name: string): SettingField | undefined {
  return byName.get(name);
}

/** Values by dotted name. */
export type FlatSettings = Readonly<Record<string, unknown>>;

/** The nested form of values by dotted name. */
export function nested(flat: FlatSettings): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(flat)) {
    const [head = "", tail] = name.split(".");
    if (tail === undefined) result[head] = value;
    else result[head] = { ...(result[head] as object | undefined), [tail]: value };
  }
  return result;
}

export function valueAt(settings: unknown, field: SettingField): unknown {
  let value = settings;
  for (const part of field.path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<string, unknown>)[part];
  }
  return value;
}

function leaves(properties: Readonly<Record<string, TSchema>>, path: readonly string[]): SettingField[] {
  return Object.entries(properties).flatMap(([key, schema]) => {
    const facts = schema as SchemaFacts;
    const own = [...path, key];
    if (facts.type === "object" && facts.properties) return leaves(facts.properties, own);
    return [leaf(own, schema, facts)];
  });
}

function leaf(path: readonly string[], schema: TSchema, facts: SchemaFacts): SettingField {
  const applies = facts["x-applies"];
  const name = path.join(".");
  if (applies === undefined || facts.default === undefined) {
    throw new TypeError(`${name} says no default or no x-applies`);
  }
  let check: ReturnType<typeof compileValueValidator> | undefined;
  return {
    name,
    path,
    schema,
    applies,
    isSecret: facts["x-secret"] === true,
    default: facts.default,
    description: facts.description,
    problems: (value) => {
      // Compiled on first use: most starts set a handful of fields.
      check ??= compileValueValidator(schema, "");
      return check(value).map((issue) =>
        issue.path === "" ? issue.message : `entry ${issue.path.slice(1)} ${issue.message}`,
      );
    },
  };
}

const TRUE = new Set(["true", "1", "yes", "on"]);
const FALSE = new Set(["false", "0", "no", "off"]);

/** Fields read from an input, or the reason why it is unusable. */
type InputReading = { readonly values: Readonly<Record<string, unknown>> } | { readonly problem: string };

/** One way to set fields from outside: an environment variable, a flag, or both. */
export interface SettingInput {
  /** Flag without its dashes; null where there is none. */
  readonly flag: string | null;
  /** Environment variables without their prefix, the preferred one first. */
  readonly environment: readonly string[];
  readonly fields: readonly string[];
  /** `switch`: a flag without a value; `list`: may be repeated. */
  readonly takes: "value" | "list" | "switch";
  readonly placeholder: string;
  /** The words it takes, where these are few. */
  readonly choices?: readonly string[];
  readonly description: string;
  readonly read: (text: string) => InputReading;
}

/** Fields whose variables or flags are spelled otherwise than the field. */
const SPELLINGS: Readonly<Record<string, { readonly flag?: string | null; readonly environment?: readonly string[] }>> =
  {
    allowed_ips: { flag: "allowed-ip" },
    allowed_api_hosts: { flag: "allowed-api-host" },
    ignored_domains: { flag: "ignored-domain" },
    disabled_features: { flag: "disable-feature" },
    mock_body_dirs: { flag: "mock-body-dir" },
    passthrough_domains: { flag: "passthrough-domain" },
    upstream_insecure_hosts: { flag: "upstream-insecure-host" },
    upstream_ca_file: { flag: "upstream-ca" },
    upstream_client_certificates: { flag: "upstream-client-certificate" },
    public_ip: { environment: ["PUBLIC_IP", "HOST_IP"] },
    socks_auth_username: { flag: "socks-username", environment: ["SOCKS_USERNAME", "SOCKS_AUTH_USERNAME"] },
    socks_auth_password: { flag: "socks-password", environment: ["SOCKS_PASSWORD", "SOCKS_AUTH_PASSWORD"] },
    "log_config.enabled": { flag: "log-file", environment: ["LOG_FILE"] },
    "log_config.rotation": { flag: "log-rotation", environment: ["LOG_ROTATION"] },
    "log_config.max_files": { flag: "log-max-files", environment: ["LOG_MAX_FILES"] },
    "log_config.max_file_size_mb": { flag: "log-max-file-size-mb", environment: ["LOG_MAX_FILE_SIZE_MB"] },
    "log_config.json_format": { flag: "log-json", environment: ["LOG_JSON"] },
    "log_config.async_writing": { flag: "log-async", environment: ["LOG_ASYNC"] },
    "log_config.async_mode": { flag: "log-async-mode", environment: ["LOG_ASYNC_MODE"] },
    "log_config.async_buffer_size": { flag: "log-async-buffer-size", environment: ["LOG_ASYNC_BUFFER_SIZE"] },
    "upstream_proxy.protocol": {
      flag: "upstream-protocol",
      environment: ["UPSTREAM_PROTOCOL", "UPSTREAM_PROXY_PROTOCOL"],
    },
    "upstream_proxy.host": { flag: null },
    "upstream_proxy.port": { flag: null },
    "upstream_proxy.auth_username": { flag: null },
    "upstream_proxy.auth_password": { flag: null },
    "upstream_proxy.no_proxy_hosts": {
      flag: "upstream-no-proxy",
      environment: ["UPSTREAM_NO_PROXY", "UPSTREAM_PROXY_NO_PROXY_HOSTS"],
    },
  };

/** Inputs that set several fields, or one the other way round. They come after the plain ones and so win over them. */
const COMPOUND: readonly SettingInput[] = [
  {
    flag: "upstream-proxy",
    environment: ["UPSTREAM_PROXY"],
    fields: ["upstream_proxy.host", "upstream_proxy.port"],
    takes: "value",
    placeholder: "host:port",
    description: "Proxy to chain through",
    read: readAddress,
  },
  {
    flag: "upstream-auth",
    environment: ["UPSTREAM_AUTH"],
    fields: ["upstream_proxy.auth_username", "upstream_proxy.auth_password"],
    takes: "value",
    placeholder: "user:pass",
    description: "Credentials for the upstream proxy",
    read: readCredentials,
  },
  {
    flag: "no-https",
    environment: ["NO_HTTPS"],
    fields: ["intercept_https"],
    takes: "switch",
    placeholder: "",
    description: "Tunnel HTTPS without reading it",
    read: readNoHttps,
  },
];

/** Every input, the plain ones first. */
export const SETTING_INPUTS: readonly SettingInput[] = [...SETTING_FIELDS.map(plainInput), ...COMPOUND];

/** The preferred variable of a field, with prefix. */
export function environmentName(field: SettingField): string {
  return `WEIR_${SETTING_INPUTS.find((input) => input.fields.length === 1 && input.fields[0] === field.name)?.environment[0] ?? ""}`;
}

/** The flag of a field with its dashes; a compound flag where the field has none of its own. */
export function flagName(field: SettingField): string | null {
  const inputs = SETTING_INPUTS.filter((input) => input.flag !== null && input.fields.includes(field.name));
  return inputs[0] === undefined ? null : `--${inputs[0].flag}`;
}

function plainInput(field: SettingField): SettingInput {
  const spelling = SPELLINGS[field.name] ?? {};
  const { type, enum: choices } = notNull(field.schema);
  return {
    flag: spelling.flag === undefined ? field.name.replace(/[._]/g, "-") : spelling.flag,
    environment: spelling.environment ?? [field.name.replace(/\./g, "_").toUpperCase()],
    fields: [field.name],
    takes: type === "array" ? "list" : type === "boolean" ? "switch" : "value",
    placeholder: placeholderOf(type, choices),
    ...(choices === undefined ? {} : { choices }),
    description: field.description ?? field.name.replace(/[._]/g, " "),
    read: (text) => readField(field, text),
  };
}

interface InputSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly InputSchema[];
}

/** The non-null variant of a nullable schema. */
function notNull(schema: InputSchema): InputSchema {
  return schema.anyOf?.find(({ type }) => type !== "null") ?? schema;
}

function placeholderOf(type: string | undefined, choices: readonly string[] | undefined): string {
  if (choices !== undefined) return "choice";
  return type === "integer" ? "number" : type === "array" ? "list" : "value";
}

function readField(field: SettingField, text: string): InputReading {
  const parsed = field.name === "log_config.rotation" ? readRotation(text) : parseSettingText(field.schema, text);
  if ("problem" in parsed) return parsed;
  const [problem] = field.problems(parsed.value);
  return problem === undefined ? { values: { [field.name]: parsed.value } } : { problem };
}

function readAddress(text: string): InputReading {
  const parsed = parseHostPort(text);
  if ("issue" in parsed) return { problem: `must be host:port. ${parsed.issue.replace(/\.$/, "")}` };
  if (parsed.port === undefined) return { problem: "must be host:port; the port is missing" };
  return { values: { "upstream_proxy.host": parsed.host, "upstream_proxy.port": parsed.port } };
}

function readCredentials(text: string): InputReading {
  const colon = text.indexOf(":");
  if (colon < 1) return { problem: "must be user:pass" };
  const values = {
    "upstream_proxy.auth_username": text.slice(0, colon),
    "upstream_proxy.auth_password": text.slice(colon + 1),
  };
  for (const [name, value] of Object.entries(values)) {
    const [problem] = settingField(name)?.problems(value) ?? [];
    if (problem !== undefined) return { problem };
  }
  return { values };
}

/** `daily`, `size:50`. */
function readRotation(text: string): ParsedText {
  const [, mode, size] = /^\s*(never|hourly|daily|size)(?::([0-9]{1,7}))?\s*$/i.exec(text) ?? [];
  const isSize = mode?.toLowerCase() === "size";
  if (mode === undefined || isSize !== (size !== undefined)) {
    return { problem: "must be never, hourly, daily or size:<MiB>" };
  }
  return { value: isSize ? { mode: "size", size_mb: Number(size) } : { mode: mode.toLowerCase() } };
}

function readNoHttps(text: string): InputReading {
  const parsed = parseSettingText({ type: "boolean" }, text);
  return "problem" in parsed ? parsed : { values: { intercept_https: parsed.value !== true } };
}

interface TextSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly TextSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
}

/** The value that a text from the environment or the command line stands for, or a sentence saying what is accepted. */
type ParsedText = { readonly value: unknown } | { readonly problem: string };

/**
 * Reads text by schema: booleans as true/false, 1/0, yes/no, on/off; lists with commas; an empty text or `null` clears
 * what may be null. Lengths are not checked here.
 */
export function parseSettingText(schema: unknown, text: string): ParsedText {
  const facts = schema as TextSchema;
  if (facts.anyOf) return parseNullable(facts.anyOf, text);
  switch (facts.type) {
    case "boolean":
      return parseBoolean(text);
    case "integer":
      return parseInteger(facts, text.trim());
    case "array":
      return {
        value: text
          .split(",")
          .map((part) => part.trim())
          .filter((part) => part !== ""),
      };
    case "string":
      if (!facts.enum || facts.enum.includes(text)) return { value: text };
      return { problem: `must be one of ${facts.enum.join(", ")}; it is ${shown(text)}` };
    default:
      throw new TypeError(`a setting of type ${String(facts.type)} cannot be read from text`);
  }
}

function parseInteger({ minimum, maximum }: TextSchema, text: string): ParsedText {
  const value = /^-?[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= (minimum ?? value) && value <= (maximum ?? value)) return { value };
  const from = minimum === undefined ? "" : ` from ${minimum} ${maximum === undefined ? "on" : `to ${maximum}`}`;
  return { problem: `must be a whole number${from}; it is ${shown(text)}` };
}

/** As it was given, cut where it is long. Only for values that hold no secret. */
function shown(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}

function parseBoolean(text: string): ParsedText {
  const word = text.trim().toLowerCase();
  if (TRUE.has(word)) return { value: true };
  if (FALSE.has(word)) return { value: false };
  return { problem: `must be true or false; it is ${shown(text)}` };
}

function parseNullable(branches: readonly TextSchema[], text: string): ParsedText {
  if (text === "" || text === "null") return { value: null };
  const branch = branches.find((candidate) => candidate.type !== "null");
  return parseSettingText(branch, text);
}
