import { linkSchema, type Linked } from "./link.ts";
import type { SchemaFile } from "./schema.ts";
import { isKnownImport, wellKnownFiles } from "./well-known-files.ts";

/** Makes a schema of files and the well-known types, which files may bring themselves. */
export function buildSchema(files: readonly SchemaFile[]): Linked {
  const own = new Set(files.map(({ name }) => name));
  const ownNames = new Set(files.flatMap(({ messages, enums }) => [...messages, ...enums].map(({ name }) => name)));
  const known = wellKnownFiles().filter(
    ({ name, messages, enums }) => !own.has(name) && ![...messages, ...enums].some((type) => ownNames.has(type.name)),
  );
  return linkSchema([...files, ...known]);
}

/** An import that no file answers to. */
export interface MissingImport {
  readonly file: string;
  readonly missing: string;
}

/**
 * Imports that are neither among the files nor well known. A file answers to an import when its name is the import's, or
 * ends the import's or begins behind it at a slash: files are often given by another path than they import each other by.
 */
export function missingImports(files: readonly SchemaFile[]): MissingImport[] {
  return files.flatMap(({ name: file, imports }) =>
    imports
      .filter((wanted) => !isKnownImport(wanted) && !files.some(({ name }) => hasName(name, wanted)))
      .map((missing) => ({ file, missing })),
  );
}

function hasName(name: string, wanted: string): boolean {
  return name === wanted || name.endsWith(`/${wanted}`) || wanted.endsWith(`/${name}`);
}
