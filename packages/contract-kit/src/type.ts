import type { TProperties, TSchema, TSchemaOptions, Type as TypeBox } from "typebox";

type Builders = Pick<
  typeof TypeBox,
  | "Array"
  | "Boolean"
  | "Integer"
  | "Literal"
  | "Null"
  | "Number"
  | "Object"
  | "Optional"
  | "Record"
  | "String"
  | "Union"
  | "Unknown"
  | "Unsafe"
>;

type Schema = Readonly<Record<string, unknown>>;

/** The mark that TypeBox's types know an optional property by; hidden, so that schemas stay plain JSON. */
const OPTIONAL = "~optional";
const isOptional = (schema: Schema): boolean => Object.hasOwn(schema, OPTIONAL);

function objectSchema(properties: Readonly<Record<string, Schema>>, options?: Schema): Schema {
  const required = Object.keys(properties).filter((name) => !isOptional(properties[name] ?? {}));
  return { type: "object", ...(required.length > 0 ? { required } : {}), properties, ...options };
}

function recordSchema(key: Schema, value: Schema, options?: Schema): Schema {
  const pattern = typeof key["pattern"] === "string" ? key["pattern"] : "^.*$";
  return { type: "object", patternProperties: { [pattern]: value }, ...options };
}

/**
 * Makes JSON Schemas, typed as TypeBox types them. What is made is a plain object either way; TypeBox's own functions
 * come in 370 files, which took a sixth of a second of every start and of every command.
 */
export const Type = {
  Array: (items: Schema, options?: Schema) => ({ type: "array", items, ...options }),
  Boolean: (options?: Schema) => ({ type: "boolean", ...options }),
  Integer: (options?: Schema) => ({ type: "integer", ...options }),
  Literal: (value: unknown, options?: Schema) => ({ type: typeof value, const: value, ...options }),
  Null: (options?: Schema) => ({ type: "null", ...options }),
  Number: (options?: Schema) => ({ type: "number", ...options }),
  Object: objectSchema,
  Optional: (schema: Schema) => Object.defineProperty({ ...schema }, OPTIONAL, { value: true }),
  Record: recordSchema,
  String: (options?: Schema) => ({ type: "string", ...options }),
  Union: (anyOf: readonly Schema[], options?: Schema) => ({ anyOf, ...options }),
  Unknown: (options?: Schema) => ({ ...options }),
  Unsafe: (schema: Schema) => ({ ...schema }),
} as unknown as Builders;

/** An object that refuses unknown properties; every wire object is one. */
export function strictObject<const P extends TProperties>(properties: P, options: TSchemaOptions = {}) {
  return Type.Object(properties, { ...options, additionalProperties: false });
}

/** `schema` or null. */
export function nullable<const S extends TSchema>(schema: S, options: TSchemaOptions = {}) {
  return Type.Union([schema, Type.Null()], options);
}

/** One of the given strings, as an `enum` keyword, so that messages can name the choices. */
export function oneOf<const V extends readonly string[]>(values: [...V], options: TSchemaOptions = {}) {
  return Type.Unsafe<V[number]>({ ...options, type: "string", enum: values });
}

/**
 * One of several objects that say by their member `tag` which they are, so that what is wrong is told of that one
 * alone. In each of `kinds` the tag is an enum.
 */
export function taggedBy<T>(tag: string, kinds: readonly TSchema[], options: TSchemaOptions = {}) {
  return Type.Unsafe<T>({
    ...options,
    type: "object",
    required: [tag],
    discriminator: { propertyName: tag },
    oneOf: kinds,
  });
}
