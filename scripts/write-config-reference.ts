import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "./source-tree.ts";
import { firstDifference } from "./write-openapi.ts";

/** The reference of all fields of a gateway's document, generated from the gateway's schema. */
const REFERENCE = "docs/gateway/configuration.md";

export interface FieldSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly (string | number | boolean | null)[];
  readonly const?: string | number | boolean | null;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, FieldSchema>>;
  readonly additionalProperties?: boolean | FieldSchema;
  readonly items?: FieldSchema;
  readonly anyOf?: readonly FieldSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
}

interface Row {
  readonly field: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
}

const INTRODUCTION = `# Configuration reference

A document is YAML or JSON of at most 4 MiB. Unknown fields and undefined names are errors with their line. Durations end in
\`_ms\` or \`_secs\`, sizes in \`_bytes\`. Fields with **bold** names are required in their block.

Fields for secrets accept \`\${NAME}\`, a variable of the environment, or \`\${file:/path}\`, the content of a file, as their whole
value. In other fields these are errors, in texts for clients (\`body\`, \`message\`) plain text and a warning. Inline secrets
are never shown.

For completion and validation in an editor, run \`sluice schema > gateway.schema.json\` and begin the document with
\`# yaml-language-server: $schema=./gateway.schema.json\`. \`node scripts/write-config-reference.ts\` generates this page from the
same schema.

## In TypeScript

A program in this repository can create a document with types, so that the compiler checks fields and values:

\`\`\`ts
// gateway.config.ts
import { configText, defineConfig } from "@headworks/gateway-contract";

const config = defineConfig({
  listeners: [{ name: "public", address: "127.0.0.1", port: 8080 }],
  routes: [
    {
      name: "hello",
      match: { path: { type: "prefix", value: "/" } },
      action: { type: "respond", status: 200, body: "hello" },
    },
  ],
});
process.stdout.write(configText(config));
\`\`\`

Sluice reads text only, so the program writes it: \`node gateway.config.ts > gateway.json\`, then
\`sluice validate gateway.json\` and \`sluice serve --config gateway.json\`. The running gateway reloads \`gateway.json\` when it
changes. Write numbers above 2^53 as bigints, such as \`18446744073709551615n\`. \`sluice validate\` checks more than the types:
names, bounds and files.
`;

/** The page: a table for each section of the document. */
export function referenceText(schema: FieldSchema): string {
  const sections: string[] = [];
  const loose: Row[] = [];
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const rows = rowsBelow(field, "");
    if (rows.length === 0) {
      loose.push(rowOf(name, field, schema.required?.includes(name) === true));
      continue;
    }
    const kind = field.type === "array" ? "A list; each member has:" : "";
    sections.push([`## ${name}`, field.description ?? "", kind, table(rows)].filter(Boolean).join("\n\n"));
  }
  return `${[INTRODUCTION.trimEnd(), "## At the root", table(loose), ...sections].join("\n\n")}\n`;
}

function rowsBelow(schema: FieldSchema, prefix: string): Row[] {
  if (schema.items !== undefined) {
    return rowsBelow(schema.items, schema.type === "array" && prefix !== "" ? `${prefix}[]` : prefix);
  }
  const rows: Row[] = [];
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const path = prefix === "" ? name : `${prefix}.${name}`;
    rows.push(rowOf(path, field, schema.required?.includes(name) === true), ...rowsBelow(field, path));
  }
  rows.push(...formRows(schema.anyOf ?? [], prefix));
  if (typeof schema.additionalProperties === "object") {
    rows.push(...rowsBelow(schema.additionalProperties, `${prefix}.*`));
  }
  return rows.filter((row, at) => rows.findIndex(({ field }) => field === row.field) === at);
}

/** The fields of a block with several forms, which a field with a fixed value distinguishes; common fields appear once. */
function formRows(forms: readonly FieldSchema[], prefix: string): Row[] {
  const rows = new Map<string, Row & { readonly kinds: string[] }>();
  const tag = Object.keys(forms[0]?.properties ?? {}).find((name) =>
    forms.every(({ properties }) => properties?.[name]?.const !== undefined),
  );
  const tagField = tag === undefined || prefix === "" ? tag : `${prefix}.${tag}`;
  for (const form of forms) {
    const kind = tag === undefined ? "" : typeText(form.properties?.[tag] ?? {});
    for (const row of rowsBelow(form, prefix)) {
      const known = rows.get(row.field);
      if (known === undefined) rows.set(row.field, { ...row, kinds: [kind] });
      else {
        const types = known.type === row.type ? [row.type] : [known.type, row.type];
        const type = types.join(row.field === tagField ? " " : " or ");
        const isRequired = known.isRequired && row.isRequired;
        rows.set(row.field, { ...known, type, isRequired, kinds: [...known.kinds, kind] });
      }
    }
  }
  return Array.from(rows.values(), ({ kinds, ...row }) => {
    const isStated = new Set(kinds).size === forms.length || row.description.startsWith("With `");
    if (tag === undefined || isStated) return row;
    return { ...row, description: `With \`${tagField}\` ${kinds.join(", ")}. ${row.description}`.trim() };
  });
}

function rowOf(field: string, schema: FieldSchema, isRequired: boolean): Row {
  return { field, type: typeText(schema), isRequired, description: schema.description ?? "" };
}

function typeText(schema: FieldSchema): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(" ");
  if (schema.const !== undefined) return `\`${String(schema.const)}\``;
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeText))].join(" or ");
  if (schema.items !== undefined) {
    const inner =
      schema.items.properties === undefined && schema.items.anyOf === undefined ? typeText(schema.items) : "blocks";
    return `list of ${inner}`;
  }
  if (schema.type === "object") return schema.properties === undefined ? "names and values" : "block";
  const type = Array.isArray(schema.type) ? schema.type.join(" or ") : String(schema.type ?? "any");
  const { minimum, maximum, exclusiveMinimum: below } = schema;
  const parts = [type];
  if (below !== undefined) parts.push(`above ${below}`);
  else if (minimum !== undefined) parts.push(maximum === undefined ? `from ${minimum}` : String(minimum));
  if (maximum !== undefined) parts.push(`to ${maximum}`);
  return parts.join(" ");
}

function table(rows: readonly Row[]): string {
  const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");
  const lines = rows.map(({ field, type, isRequired, description }) => {
    const name = isRequired ? `**\`${field}\`**` : `\`${field}\``;
    return `| ${cell(name)} | ${cell(type)} | ${cell(description)} |`;
  });
  return ["| Field | Type | Meaning |", "| --- | --- | --- |", ...lines].join("\n");
}

/** Integers beyond the range of exact doubles keep their digits as text. */
function schemaOf(text: string): FieldSchema {
  return JSON.parse(text, (_, value: unknown, context?: { readonly source?: string }) =>
    typeof value === "number" && !Number.isSafeInteger(value) ? (context?.source ?? value) : value,
  ) as FieldSchema;
}

if (import.meta.main) {
  const main = join(repositoryRoot, "apps/gateway/bin/sluice.js");
  const { stdout } = spawnSync(process.execPath, [main, "schema"], { encoding: "utf8", maxBuffer: 16 * 1024 * 1024 });
  const wanted = referenceText(schemaOf(stdout));
  const path = join(repositoryRoot, REFERENCE);
  const committed = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (!process.argv.includes("--check")) {
    writeFileSync(path, wanted);
    console.log(`Wrote ${REFERENCE}`);
  } else if (committed === wanted) {
    console.log(`${REFERENCE} matches the schema`);
  } else {
    console.error(
      `${REFERENCE} does not match the schema, first in ${firstDifference(committed, wanted) ?? "nothing"}`,
    );
    console.error("Run node scripts/write-config-reference.ts and commit the file");
    process.exitCode = 1;
  }
}
