import { buildSchema } from "@headworks/protobuf";
import type { MethodType, Schema, SchemaFile } from "@headworks/protobuf";

/** A schema as it is kept. */
export interface StoredSchema {
  readonly id: string;
  readonly name: string;
  readonly source: "proto" | "descriptor_set" | "reflection";
  readonly files: readonly SchemaFile[];
  readonly createdAtMs: number;
}

/** A schema that can be used. */
export interface OpenSchema {
  readonly stored: StoredSchema;
  readonly schema: Schema;
  readonly issues: readonly string[];
}

/** A method and where it is declared. */
export interface KnownMethod {
  readonly id: string;
  readonly schema: Schema;
  readonly method: MethodType;
}

/** All schemas, newest first; made anew whenever one comes or goes. */
export interface SchemaBook {
  readonly schemas: readonly OpenSchema[];
  /** Of several schemas that know the method, the newest counts. */
  find(service: string, method: string): KnownMethod | undefined;
  /** The well-known types, for what needs no schema of a user. */
  readonly wellKnown: () => Schema;
}

let wellKnown: Schema | undefined;

/** Opens schemas, which are given oldest first. Those of `before` that are still there are taken over. */
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
