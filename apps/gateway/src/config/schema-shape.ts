/** The subset of JSON Schema used by the document schema, with private keywords. */
export interface Schema {
  readonly type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly const?: string | number;
  readonly enum?: readonly (string | number)[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly "x-uint64"?: boolean;
  readonly "x-secret"?: boolean;
  readonly "x-file"?: boolean;
  readonly "x-header-map"?: boolean;
  readonly "x-header-renames"?: boolean;
  readonly "x-cidr"?: boolean;
  readonly "x-choices"?: readonly string[];
  readonly "x-expects"?: string;
}

/** Keywords that the readers implement; a test rejects schemas with others. */
export const KNOWN_KEYWORDS: ReadonlySet<string> = new Set([
  "type",
  "properties",
  "required",
  "additionalProperties",
  "patternProperties",
  "items",
  "anyOf",
  "const",
  "enum",
  "minLength",
  "maxLength",
  "pattern",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
  "title",
  "description",
  "default",
  "x-uint64",
  "x-secret",
  "x-file",
  "x-header-map",
  "x-header-renames",
  "x-cidr",
  "x-choices",
  "x-expects",
]);

/** The union branch with this `type`. */
export function chosenBranch(branches: readonly Schema[], type: unknown): Schema | undefined {
  return branches.find((branch) => branch.properties?.["type"]?.const === type);
}

/** The `type` values of a union. */
export function branchNames(branches: readonly Schema[]): string[] {
  return branches.map((branch) => String(branch.properties?.["type"]?.const));
}

/** The schema of a member of an object, list or record; `value` selects the union branch. */
export function memberSchema(schema: Schema, value: unknown, step: string | number): Schema | undefined {
  if (schema.anyOf !== undefined) {
    const type = typeof value === "object" && value !== null && "type" in value ? value.type : undefined;
    const branch = chosenBranch(schema.anyOf, type);
    return branch === undefined ? undefined : memberSchema(branch, value, step);
  }
  if (typeof step === "number") return schema.items;
  if (schema.properties === undefined) return Object.values(schema.patternProperties ?? {})[0];
  return Object.hasOwn(schema.properties, step) ? schema.properties[step] : undefined;
}
