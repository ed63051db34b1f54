/** The spellings of a slice's name and of the type it stores. */
export interface SliceNames {
  /** `ws-traffic`: folder, contract file, path. */
  readonly slice: string;
  /** `wsTraffic`: variables. */
  readonly camel: string;
  /** `WsTraffic`: functions and types. */
  readonly pascal: string;
  /** `WsFrame`: the type of what the API lists. */
  readonly entity: string;
}

const KEBAB = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/u;

/** The spellings, or a sentence with the reason why the names are invalid. */
export function sliceNames(slice: string, noun = `${slice}-entry`): SliceNames | string {
  if (!KEBAB.test(slice)) return `"${slice}" is no slice name: small letters and digits, words joined by "-"`;
  if (!KEBAB.test(noun)) return `"${noun}" is no noun: small letters and digits, words joined by "-"`;
  const pascal = pascalCase(slice);
  return { slice, pascal, camel: pascal.charAt(0).toLowerCase() + pascal.slice(1), entity: pascalCase(noun) };
}

function pascalCase(kebab: string): string {
  return kebab.replace(/(?:^|-)(\w)/gu, (_, letter: string) => letter.toUpperCase());
}

/** The files of a new slice, by path from the root: one operation that works, and tests that can fail. */
export function sliceFiles(names: SliceNames): Record<string, string> {
  const { slice } = names;
  const folder = `apps/capture-proxy/src/slices/${slice}`;
  return {
    [`packages/capture-contract/src/${slice}.ts`]: contract(names),
    [`${folder}/${slice}.slice.ts`]: builder(names),
    [`${folder}/${slice}.slice.test.ts`]: builderTest(names),
    [`${folder}/${slice}.operations.ts`]: operations(names),
    [`${folder}/${slice}.operations.test.ts`]: operationsTest(names),
  };
}

/** Adds a contract to the contract package's entry. Returns undefined if the entry has another form. */
export function addToContractEntry(entry: string, { slice, camel }: SliceNames): string | undefined {
  const table = `${camel}Operations`;
  const tableEnd = /export const operations = \{\n[^}]*\n(?=\} as const;)/u;
  const lastExport = /(?:^export \* from ".*";\n)+/mu;
  const lastImport = /(?:^import .*;\n)+/mu;
  if (![tableEnd, lastExport, lastImport].every((place) => place.test(entry))) return undefined;
  const key = slice === camel ? slice : `"${slice}"`;
  return entry
    .replace(lastImport, (imports) => sorted(imports, `import { ${table} } from "./${slice}.ts";`))
    .replace(tableEnd, (start) => `${start}  ${key}: ${table},\n`)
    .replace(lastExport, (exports) => sorted(exports, `export * from "./${slice}.ts";`));
}

/** Lines ordered by the file they name. */
function sorted(lines: string, added: string): string {
  const path = (line: string): string => line.slice(line.indexOf('"'));
  return `${[...lines.trimEnd().split("\n"), added].toSorted((a, b) => (path(a) < path(b) ? -1 : 1)).join("\n")}\n`;
}

function contract({ slice, camel, pascal, entity }: SliceNames): string {
  return `import { defineOperations, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Id, Timestamp } from "./primitives.ts";

export const ${entity} = strictObject({ id: Id, created_at: Timestamp }, { $id: "${entity}" });
export type ${entity} = Static<typeof ${entity}>;

export const ${camel}Operations = defineOperations({
  list${pascal}: {
    method: "GET",
    path: "/${slice}",
    summary: "List ${slice.replaceAll("-", " ")}, newest first",
    access: "config:read",
    responses: { 200: Type.Array(${entity}) },
  },
});
`;
}

function builder({ slice, camel, pascal }: SliceNames): string {
  return `import type { ${camel}Operations } from "@headworks/capture-contract";
import type { Slice } from "#slice.ts";
import { ${camel}Handlers } from "./${slice}.operations.ts";

/** Builds the slice; take a \`SliceHost\` as parameter when it needs one. */
export function create${pascal}Slice(): Slice<typeof ${camel}Operations> {
  return { name: "${slice}", operations: ${camel}Handlers(() => []) };
}
`;
}

function builderTest({ slice, camel, pascal }: SliceNames): string {
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { ${camel}Operations } from "@headworks/capture-contract";
import { create${pascal}Slice } from "./${slice}.slice.ts";

test("the slice has the name of its contract and handles all its operations", () => {
  const slice = create${pascal}Slice();
  assert.equal(slice.name, "${slice}");
  assert.deepEqual(Object.keys(slice.operations).toSorted(), Object.keys(${camel}Operations).toSorted());
});
`;
}

function operations({ camel, pascal, entity }: SliceNames): string {
  return `import type { ${entity}, ${camel}Operations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";

/** The handlers of the contract; \`list\` returns everything the slice stores, newest first. */
export function ${camel}Handlers(list: () => ${entity}[]): Handlers<typeof ${camel}Operations> {
  return {
    list${pascal}: () => ({ status: 200, body: list() }),
  };
}
`;
}

function operationsTest({ slice, camel, pascal, entity }: SliceNames): string {
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import type { ${entity} } from "@headworks/capture-contract";
import { ${camel}Handlers } from "./${slice}.operations.ts";

test("the list has the stored items", async () => {
  const kept: ${entity}[] = [{ id: "3b241101-e2bb-4255-8caf-4136c566a962", created_at: "2026-01-02T03:04:05.678Z" }];
  const handlers = ${camel}Handlers(() => kept);
  const input = { params: undefined, query: undefined, body: undefined, headers: {}, signal: new AbortController().signal };
  assert.deepEqual(await handlers.list${pascal}(input), { status: 200, body: kept });
});
`;
}
