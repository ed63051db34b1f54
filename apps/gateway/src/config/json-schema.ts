import { FIELD_NOTES } from "@headworks/gateway-contract";
import { documentSchema } from "./read-document.ts";
import type { Schema } from "./schema-shape.ts";

const MAX_UINT64 = 0xffff_ffff_ffff_ffffn;

/** A schema that may contain exact 64-bit bounds; serialize it with `toJson`. */
export type PlainSchema = Readonly<Record<string, unknown>>;

/** The document schema for editors: JSON Schema 2020-12 with exact 64-bit bounds. */
export function editorSchema(): PlainSchema {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    ...plain(documentSchema, ""),
    description: "Configuration of Sluice, the API gateway of Headworks",
  };
}

function plain(schema: Schema, path: string): PlainSchema {
  const copy: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (!keyword.startsWith("x-")) copy[keyword] = value;
  }
  if (schema["x-uint64"] === true) copy["maximum"] = MAX_UINT64;
  if (schema["x-choices"] !== undefined) copy["enum"] = schema["x-choices"];
  const note = noteOf(path);
  if (note !== undefined) copy["description"] = note;
  if (schema.properties !== undefined) copy["properties"] = members(schema.properties, path);
  if (schema.patternProperties !== undefined) {
    delete copy["patternProperties"];
    copy["additionalProperties"] = plain(Object.values(schema.patternProperties)[0] ?? {}, `${path}.*`);
  }
  if (schema.items !== undefined) copy["items"] = plain(schema.items, `${path}[]`);
  if (schema.anyOf !== undefined) copy["anyOf"] = schema.anyOf.map((branch) => plain(branch, path));
  return copy;
}

/** The description of a field; `authorization` blocks share theirs. */
export function noteOf(path: string): string | undefined {
  return FIELD_NOTES[path] ?? FIELD_NOTES[path.replace(/^.*\.(?=authorization\.)/, "")];
}

function members(properties: Readonly<Record<string, Schema>>, path: string): Record<string, PlainSchema> {
  // Gateway settings at the root and under `gateway` share descriptions.
  const prefix = path === "" || path === "gateway" ? "" : `${path}.`;
  return Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, plain(inner, prefix + name)]));
}

/** Dotted paths of all fields, `[]` for list members, union branches merged. For checks of descriptions. */
export function fieldPaths(schema: Schema = documentSchema, path = ""): Set<string> {
  const paths = new Set<string>();
  const prefix = path === "" || path === "gateway" ? "" : `${path}.`;
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    paths.add(prefix + name);
    for (const below of fieldPaths(inner, prefix + name)) paths.add(below);
  }
  for (const branch of schema.anyOf ?? []) for (const below of fieldPaths(branch, path)) paths.add(below);
  if (schema.items !== undefined) for (const below of fieldPaths(schema.items, `${path}[]`)) paths.add(below);
  return paths;
}
