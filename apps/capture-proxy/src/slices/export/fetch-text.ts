import { changedFields, writtenFields, hasField, shownText, urlOf } from "./snippet-request.ts";
import type { SnippetRequest } from "./snippet-request.ts";

/** Names that fetch sets itself or refuses (forbidden by the Fetch standard and by Node). */
const REFUSED: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** Fields that Node's fetch adds; browsers add more. */
const ADDED = ["Accept", "Accept-Language", "Sec-Fetch-Mode", "User-Agent", "Accept-Encoding"];
/** Fields that fetch adds to conditional requests, to bypass caches. */
const ADDED_TO_CONDITIONS = ["Pragma", "Cache-Control"];
const CONDITIONS = ["if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since"];
/** Methods for which fetch announces an empty body; case matters for methods unknown to the Fetch standard. */
const ANNOUNCES_NONE = /^(?:[Pp][Oo][Ss][Tt]|[Pp][Uu][Tt]|PATCH|PROPFIND|PROPPATCH|QUERY)$/u;
const REFUSED_METHODS: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"]);

/** A fetch call for Node and browsers; comments in the text name what fetch cannot send. */
export function fetchText(request: SnippetRequest): string {
  const isBodyless = request.method === "GET" || request.method === "HEAD";
  const fields = writtenFields(request);
  const writesLength = (request.body.length > 0 && !isBodyless) || ANNOUNCES_NONE.test(request.method);
  const left = new Set(fields.map(([name]) => name.toLowerCase()).filter((name) => REFUSED.has(name)));
  if (!writesLength && hasField(request, "content-length")) left.add("content-length");
  const comments = [
    ...(REFUSED_METHODS.has(request.method.toUpperCase()) ? ["fetch refuses this method"] : []),
    ...changedTarget(request),
    ...(isBodyless && request.body.length > 0 ? ["fetch sends no body with this method; it is left out"] : []),
    ...changedFields("fetch", request, addedFields(request, writesLength), true),
    ...(hasField(request, "range") && hasField(request, "accept-encoding")
      ? ["fetch adds identity to Accept-Encoding"]
      : []),
    ...(left.size > 0 ? [`fetch leaves out fields that it refuses: ${[...left].join(", ")}`] : []),
  ];
  const headers = fields
    .filter(([name]) => !REFUSED.has(name.toLowerCase()))
    .map(([name, value]) => `    [${literal(name)}, ${literal(value)}],\n`);
  const members = [
    `  method: ${literal(request.method)},\n`,
    ...(headers.length > 0 ? [`  headers: [\n${headers.join("")}  ],\n`] : []),
    ...(request.body.length > 0 && !isBodyless ? [`  body: ${bodyLiteral(request.body)},\n`] : []),
    '  redirect: "manual",\n',
  ];
  return [
    ...comments.map((comment) => `// ${comment}\n`),
    `const response = await fetch(${literal(urlOf(request))}, {\n${members.join("")}});\n`,
    "console.log(response.status, await response.text());\n",
  ].join("");
}

function addedFields(request: SnippetRequest, writesLength: boolean): string[] {
  return [
    ...ADDED,
    ...(CONDITIONS.some((name) => hasField(request, name)) ? ADDED_TO_CONDITIONS : []),
    ...(writesLength ? ["Content-Length"] : []),
  ];
}

/** fetch resolves dot segments and encodes some characters that other clients send unchanged. */
function changedTarget(request: SnippetRequest): string[] {
  const url = URL.parse(urlOf(request));
  if (url === null) return ["fetch refuses this URL"];
  const sent = url.pathname + url.search;
  return sent === request.target ? [] : [`fetch asks for ${literal(sent)} instead`];
}

function bodyLiteral(body: Uint8Array): string {
  const text = shownText(body, { lineEnds: true });
  const bytes = `Uint8Array.from(atob(${JSON.stringify(Buffer.from(body).toString("base64"))}), (c) => c.charCodeAt(0))`;
  // fetch adds a Content-Type to text but not to bytes.
  return text === undefined ? bytes : `new TextEncoder().encode(${literal(text)})`;
}

/** A string literal that is safe anywhere, inside a script element too. */
function literal(text: string): string {
  return JSON.stringify(text).replaceAll(/[^\x20-\x7e]|</gu, (character) =>
    [...Array(character.length).keys()]
      .map((unit) => `\\u${character.charCodeAt(unit).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}
