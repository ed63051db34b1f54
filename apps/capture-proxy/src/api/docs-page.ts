import type { AnyOperations, Operation } from "@headworks/contract-kit";

interface DocsInfo {
  readonly title: string;
  readonly version: string;
  readonly description: string;
  readonly prefix: string;
}

/** A page that describes every operation of the contract, without scripts; anchors have the names of operations. */
export function renderApiDocs(operations: AnyOperations, info: DocsInfo): string {
  const slices = Object.entries(operations);
  const contents = slices
    .map(([slice, table]) => {
      const links = Object.entries(table).map(
        ([name, { method, path }]) =>
          `<li><a href="#${escape(name)}"><code>${method} ${pathText(path)}</code></a></li>`,
      );
      return `<details open><summary>${escape(slice)}</summary><ul>${links.join("")}</ul></details>`;
    })
    .join("");
  const sections = slices
    .map(([slice, table]) => {
      const entries = Object.entries(table).map(([name, operation]) => renderOperation(name, operation, info.prefix));
      return `<section><h2 id="${escape(slice)}">${escape(slice)}</h2>${entries.join("")}</section>`;
    })
    .join("");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(info.title)} API</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<style>${STYLE}</style>
</head>
<body>
<nav aria-label="Operations"><strong>${escape(info.title)} API ${escape(info.version)}</strong>
<p><a href="${escape(info.prefix)}/openapi.json">OpenAPI document</a></p>${contents}</nav>
<main><h1>${escape(info.title)} API</h1><p>${prose(info.description)}</p>
<p>Every error response is <code>{"error", "code"}</code>, for a bad request with <code>details</code>: each field and its problem.</p>
${sections}</main>
</body>
</html>
`;
}

function renderOperation(name: string, operation: Operation, prefix: string): string {
  const paths = [prefix + operation.path, ...(operation.aliases ?? [])];
  return `<article id="${escape(name)}">
<h3><span class="method ${operation.method.toLowerCase()}">${operation.method}</span> ${paths.map((path) => `<code>${pathText(path)}</code>`).join(" ")}</h3>
<p>${prose(operation.summary)}${operation.description === undefined ? "" : `. ${prose(operation.description)}`}</p>
<p class="access">Needs <code>${escape(operation.access)}</code></p>
${renderFields("Path", operation.params)}${renderFields("Query", operation.query)}${renderBody(operation)}${renderResponses(operation)}
</article>`;
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, object>>;
  readonly required?: readonly string[];
}

function renderFields(title: string, schema: unknown): string {
  const { properties, required = [] } = (schema ?? {}) as ObjectSchema;
  if (properties === undefined || Object.keys(properties).length === 0) return "";
  const rows = Object.entries(properties).map(([name, property]) => {
    const description = (property as { description?: string }).description ?? "";
    return `<tr><th scope="row"><code>${escape(name)}</code>${required.includes(name) ? " <em>required</em>" : ""}</th><td><code>${escape(typeOf(property))}</code></td><td>${prose(description)}</td></tr>`;
  });
  return `<table><caption>${title}</caption><tbody>${rows.join("")}</tbody></table>`;
}

function renderBody(operation: Operation): string {
  if (operation.body === undefined) return "";
  if ("upload" in operation.body) {
    const { upload, description } = operation.body as { upload: readonly string[]; description: string };
    return `<p>Body: ${upload.map((type) => `<code>${escape(type)}</code>`).join(" or ")}. ${prose(description)}</p>`;
  }
  return renderFields(operation.bodyOptional === true ? "Body (optional)" : "Body", operation.body);
}

function renderResponses(operation: Operation): string {
  const items = Object.entries(operation.responses).map(([status, response]) => {
    if (response === null) return `<dt>${status}</dt><dd>empty</dd>`;
    if ("media" in response) {
      return `<dt>${status}</dt><dd><code>${escape(String(response.media))}</code> ${prose(String(response.description))}</dd>`;
    }
    return `<dt>${status}</dt><dd><code>${escape(typeOf(response))}</code></dd>`;
  });
  return `<dl>${items.join("")}</dl>`;
}

/** A short notation for a schema: `string`, `integer 1..1000 = 100`, `BlockEntry[]`, `"asc" | "desc"`. */
function typeOf(schema: object): string {
  const facts = schema as {
    $id?: string;
    type?: string;
    enum?: readonly unknown[];
    const?: unknown;
    anyOf?: readonly object[];
    items?: object | readonly object[];
    properties?: Readonly<Record<string, object>>;
    patternProperties?: Readonly<Record<string, object>>;
    minimum?: number;
    maximum?: number;
    default?: unknown;
  };
  const preset = facts.default === undefined ? "" : ` = ${JSON.stringify(facts.default)}`;
  if (facts.$id !== undefined) return facts.$id;
  if (facts.enum) return facts.enum.map((value) => JSON.stringify(value)).join(" | ") + preset;
  if (facts.const !== undefined) return JSON.stringify(facts.const);
  if (facts.anyOf) return facts.anyOf.map(typeOf).join(" | ") + preset;
  if (facts.type === "array") {
    const { items } = facts;
    return Array.isArray(items) ? `[${items.map(typeOf).join(", ")}]` : `${bracketed(typeOf(items ?? {}))}[]`;
  }
  if (facts.type === "object" && facts.properties) {
    return `{ ${Object.entries(facts.properties)
      .map(([name, property]) => `${name}: ${typeOf(property)}`)
      .join(", ")} }`;
  }
  if (facts.type === "object" && facts.patternProperties) {
    return `{ [name]: ${typeOf(Object.values(facts.patternProperties)[0] ?? {})} }`;
  }
  const range =
    facts.minimum === undefined && facts.maximum === undefined ? "" : ` ${facts.minimum ?? ""}..${facts.maximum ?? ""}`;
  return (facts.type ?? "any") + range + preset;
}

function bracketed(type: string): string {
  return type.includes(" | ") ? `(${type})` : type;
}

/** A sentence of the contract, with code in backticks. */
function prose(text: string): string {
  return escape(text).replace(/`([^`]+)`/g, "<code>$1</code>");
}

/** A path that breaks between its segments before it breaks in one. */
function pathText(path: string): string {
  return escape(path).replace(/(?!^)\//g, "<wbr>/");
}

/** Text for HTML, in content and in double-quoted attributes. */
function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; --line: color-mix(in srgb, currentColor 18%, transparent); }
body { margin: 0; display: grid; grid-template-columns: minmax(14rem, 20rem) minmax(0, 60rem); }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1rem; box-sizing: border-box; border-right: 1px solid var(--line); }
nav ul { list-style: none; margin: 0; padding: 0 0 .5rem .75rem; } nav code { font-size: .8rem; }
summary { cursor: pointer; font-weight: 600; }
main { padding: 1rem 2rem 6rem; }
article { border-top: 1px solid var(--line); padding: .25rem 0 1rem; scroll-margin-top: .5rem; }
article:target { outline: 2px solid; outline-offset: .5rem; border-radius: .25rem; }
h3 { font-size: 1rem; } code { font-family: ui-monospace, monospace; overflow-wrap: break-word; }
.method { display: inline-block; min-width: 4rem; font-weight: 700; } .access { font-size: .85rem; opacity: .8; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; } caption { text-align: left; font-weight: 600; }
th, td { text-align: left; vertical-align: top; font-weight: normal; padding: .2rem .75rem .2rem 0; border-top: 1px solid var(--line); }
dl { display: grid; grid-template-columns: 3rem 1fr; gap: .2rem .75rem; } dt { font-weight: 600; } dd { margin: 0; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; height: auto; border: 0; } main { padding: 1rem; } tr, th, td { display: block; } td { border-top: 0; } }
`;
