import { buildSchema } from "@headworks/protobuf";
import type { MethodType, Schema, SchemaFile } from "@headworks/protobuf";

/** A schema as stored. */
export interface StoredSchema {
  readonly id: string;
  readonly name: string;
  readonly source: "proto" | "descriptor_set" | "reflection";
  readonly files: readonly SchemaFile[];
  readonly createdAtMs: number;
}

/** A parsed schema. */
export interface OpenSchema {
  readonly stored: StoredSchema;
  readonly schema: Schema;
  readonly issues: readonly string[];
}

/** A method and the schema that declares it. */
export interface KnownMethod {
  readonly id: string;
  readonly schema: Schema;
  readonly method: MethodType;
}

/** All schemas, newest first; rebuilt on every change. */
export interface SchemaBook {
  readonly schemas: readonly OpenSchema[];
  /** The newest schema that declares the method wins. */
  find(service: string, method: string): KnownMethod | undefined;
  /** The well-known types, which need no user schema. */
  readonly wellKnown: () => Schema;
}

let wellKnown: Schema | undefined;

/** Parses schemas, given oldest first; reuses those of `before` that still exist. */
export function openSchemaBook(stored: readonly StoredSchema[], before?: SchemaBook): SchemaBook {
  const known = new Map(before?.schemas.map((schema) => [schema.stored.id, schema]));
  const schemas = stored.toReversed().map((one): OpenSchema => {
    const taken = known.get(one.id);
    if (taken !== undefined) return taken;
    return { stored: one, ...buildSchema(one.files) };
  });
  return {
    schemas,
    find: (service, method) => {
      for (const { stored: one, schema } of schemas) {
        const found = schema.services.get(service)?.methods.get(method);
        if (found !== undefined) return { id: one.id, schema, method: found };
      }
      return undefined;
    },
    wellKnown: () => (wellKnown ??= buildSchema([]).schema),
  };
}
