import { Settings } from "@headworks/capture-contract";
import { compileValueValidator } from "@headworks/contract-kit/server";
import type { TSchema } from "typebox";

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

/** The value of a field in nested settings. */
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
