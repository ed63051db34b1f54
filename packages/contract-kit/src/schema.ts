import { Type } from "./type.ts";
import type { TProperties, TSchema, TSchemaOptions } from "typebox";

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
