import { GRPC_STATUS_NAMES } from "@headworks/http-fields";
import { FIELDS, findField, type Field } from "./fields.ts";
import { formatQuery } from "./format.ts";
import { BUILT_IN_PRESETS, type Presets } from "./query.ts";
import { scan, type ScannedItem, type ScannedTerm } from "./scan.ts";

/** Something that could stand at the caret. Replacing `start`..`end` of the text by `insert` accepts it. */
export interface Suggestion {
  readonly kind: "field" | "operator" | "value" | "keyword" | "preset";
  readonly label: string;
  readonly insert: string;
  readonly start: number;
  readonly end: number;
  /** A few words of explanation. */
  readonly detail: string;
}

/** Values that were seen for a field, best first. `key` is the header or cookie name of a keyed field. */
export type ValuesSource = (request: {
  readonly field: string;
  readonly key: string | null;
  readonly prefix: string;
}) => Promise<readonly { readonly value: string; readonly count?: number }[]>;

/** Sources of completions besides the language. */
export interface CompletionOptions {
  readonly presets?: Presets;
}

const MOST = 50;

/** Bodies and messages are too long to offer as values. */
const LONG_TEXTS: ReadonlySet<string> = new Set(["requestBody", "responseBody", "bothBodies", "messages"]);

const EXTRA_FIELDS = [
  { name: "since", detail: "started within the last…" },
  { name: "before", detail: "started before…" },
];

/** Values worth offering before any traffic was seen. */
const COMMON_VALUES: Readonly<Record<string, readonly string[]>> = {
  method: ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT"],
  scheme: ["http", "https", "ws", "wss"],
  status: ["2xx", "3xx", "4xx", "5xx", "200", "301", "304", "401", "403", "404", "429", "500", "502", "503"],
  type: [
    "json",
    "document",
    "script",
    "stylesheet",
    "image",
    "font",
    "media",
    "websocket",
    "event-stream",
    "grpc",
    "graphql",
    "tunnel",
  ],
  "grpc.status": GRPC_STATUS_NAMES,
  proto: ["HTTP/1.1", "HTTP/2", "SOCKS5"],
  dur: [">100ms", ">1s", ">10s"],
  ttfb: [">100ms", ">1s"],
  size: [">10kb", ">100kb", ">1mb"],
  reqsize: [">10kb", ">100kb", ">1mb"],
  since: ["1m", "10m", "1h", "1d"],
  before: ["1m", "10m", "1h", "1d"],
};

/**
 * What could be typed at `caret` (UTF-16 offset): fields, keywords and presets at the beginning of a term, values and
 * operators after a colon. Never rejects because of the text; a source that fails counts as empty.
 */
export async function completions(
  text: string,
  caret: number,
  valuesSource?: ValuesSource,
  options: CompletionOptions = {},
): Promise<readonly Suggestion[]> {
  const at = Math.max(0, Math.min(Math.trunc(caret) || 0, text.length));
  // What stands after the caret does not change what the word before it means.
  const items = scan(text.slice(0, at));
  const last = items.at(-1);
  const touching = last !== undefined && last.end === at ? last : undefined;
  if (touching === undefined) return beginnings("", at, at, last, options);
  if (touching.type === "preset") return presetSuggestions(touching.name, touching.start, at, options);
  if (touching.type !== "term") return beginnings("", at, at, touching, options);
  if (touching.field === undefined) return afterWord(text, at, touching, items.at(-2), options);
  const { key, name, end } = touching.field;
  if (touching.operator === undefined) {
    const row = findField(name);
    return row !== undefined && key?.end === end ? keySuggestions(row, key.text, at) : [];
  }
  return afterColon(text, at, touching, valuesSource);
}

function afterWord(
  text: string,
  at: number,
  term: ScannedTerm,
  before: ScannedItem | undefined,
  options: CompletionOptions,
): readonly Suggestion[] {
  const [value] = term.values;
  if (value?.kind !== "word") return [];
  const word = text.slice(value.start, at);
  return beginnings(word, value.start, at, before, options);
}

const COMMON_HEADERS = [
  "accept",
  "authorization",
  "cache-control",
  "content-encoding",
  "content-type",
  "cookie",
  "etag",
  "host",
  "location",
  "origin",
  "referer",
  "server",
  "set-cookie",
  "user-agent",
  "x-request-id",
];

function keySuggestions(field: Field, prefix: string, at: number): readonly Suggestion[] {
  if (field.keyed !== "caseless") return [];
  return COMMON_HEADERS.filter((name) => name.startsWith(prefix.toLowerCase())).map((name) => ({
    kind: "value",
    label: name,
    insert: `${name}]:`,
    start: at - prefix.length,
    end: at,
    detail: "header name",
  }));
}

function beginnings(
  word: string,
  start: number,
  end: number,
  before: ScannedItem | undefined,
  options: CompletionOptions,
): readonly Suggestion[] {
  const wanted = word.toLowerCase();
  const found: Suggestion[] = [];
  for (const { name, aliases, phrase, keyed } of FIELDS) {
    const names = [name, ...(aliases ?? [])];
    if (
      !names.some(
        (candidate) => candidate.startsWith(wanted) || candidate.split(".").some((part) => part.startsWith(wanted)),
      )
    ) {
      continue;
    }
    found.push({ kind: "field", label: name, insert: `${name}:`, start, end, detail: phrase });
    if (keyed !== undefined && wanted !== "") {
      found.push({ kind: "field", label: `${name}[…]`, insert: `${name}[`, start, end, detail: `${phrase} by name` });
    }
  }
  for (const { name, detail } of EXTRA_FIELDS) {
    if (name.startsWith(wanted)) found.push({ kind: "field", label: name, insert: `${name}:`, start, end, detail });
  }
  if ("json".startsWith(wanted)) {
    found.push({
      kind: "field",
      label: "json(…)",
      insert: "json(resp,$.",
      start,
      end,
      detail: "a value inside a JSON body",
    });
  }
  if (before?.type === "term" || before?.type === "close" || before?.type === "preset") {
    for (const keyword of ["AND", "OR"].filter((candidate) => candidate.startsWith(word.toUpperCase()))) {
      const detail = keyword === "AND" ? "both must hold" : "one of both must hold";
      found.push({ kind: "keyword", label: keyword, insert: `${keyword} `, start, end, detail });
    }
  }
  if ("NOT".startsWith(word.toUpperCase())) {
    found.push({ kind: "keyword", label: "NOT", insert: "NOT ", start, end, detail: "must not hold" });
  }
  if (word === "") found.push(...presetSuggestions("", start, end, options));
  return found.slice(0, MOST);
}

function presetSuggestions(
  prefix: string,
  start: number,
  end: number,
  options: CompletionOptions,
): readonly Suggestion[] {
  return Object.entries({ ...options.presets, ...BUILT_IN_PRESETS })
    .filter(([name]) => name.toLowerCase().startsWith(prefix.toLowerCase()))
    .slice(0, MOST)
    .map(([name, query]) => ({ kind: "preset", label: `@${name}`, insert: `@${name} `, start, end, detail: query }));
}

async function afterColon(
  text: string,
  at: number,
  term: ScannedTerm,
  valuesSource: ValuesSource | undefined,
): Promise<readonly Suggestion[]> {
  const { field, operator } = term;
  if (field === undefined || operator === undefined) return [];
  const row = findField(field.name);
  const name = row?.name ?? field.name.toLowerCase();
  const value = term.values.at(-1);
  const start = value !== undefined && value.end === at ? value.start : at;
  if (value?.kind === "pattern") return [];
  const prefix =
    value === undefined || start === at ? "" : value.kind === "quoted" ? value.text : text.slice(start, at);
  const plain = operator.text === ":";
  const found: Suggestion[] = [];
  for (const known of row?.value.type === "text"
    ? (row.value.choices ?? COMMON_VALUES[name] ?? [])
    : (COMMON_VALUES[name] ?? [])) {
    if (!plain && known.startsWith(">")) continue;
    if (known.toLowerCase().startsWith(prefix.toLowerCase())) {
      found.push({ kind: "value", label: known, insert: known, start, end: at, detail: "" });
    }
  }
  for (const seen of await seenValues(row, field.key?.text, prefix, valuesSource)) {
    if (found.some((suggestion) => suggestion.label === seen.value)) continue;
    const detail = seenDetail(seen.count);
    found.push({ kind: "value", label: seen.value, insert: written(name, seen.value), start, end: at, detail });
  }
  if (value === undefined && plain) found.push(...operatorSuggestions(row, at));
  return found.slice(0, MOST);
}

function seenDetail(count: number | undefined): string {
  if (count === undefined) return "seen in the traffic";
  return count === 1 ? "seen once" : `seen ${count} times`;
}

async function seenValues(
  row: Field | undefined,
  key: string | undefined,
  prefix: string,
  source: ValuesSource | undefined,
): ReturnType<ValuesSource> {
  if (row === undefined || source === undefined || LONG_TEXTS.has(row.reads)) return [];
  try {
    return await source({ field: row.name, key: key ?? null, prefix });
  } catch {
    return [];
  }
}

/** The value as it has to be written after the colon: quoted when it needs to be. */
function written(field: string, value: string): string {
  const query = formatQuery({
    kind: "field",
    field,
    key: null,
    test: { kind: "text", mode: "matches", values: [{ kind: "literal", text: value }] },
  });
  return query.slice(field.length + 1);
}

function operatorSuggestions(row: Field | undefined, at: number): readonly Suggestion[] {
  const list = (pairs: readonly (readonly [string, string])[]): readonly Suggestion[] =>
    pairs.map(([insert, detail]) => ({ kind: "operator", label: insert, insert, start: at, end: at, detail }));
  if (row === undefined) return [];
  const exists = ["*", "has any value"] as const;
  if (row.value.type === "number") {
    return list([
      [">", "more than"],
      [">=", "at least"],
      ["<", "less than"],
      ["<=", "at most"],
      ["!=", "other than"],
      exists,
    ]);
  }
  return list([
    ["=", "is exactly"],
    ["!=", "is another one than"],
    ["(", "one of several: (a|b)"],
    ["/", "matches a pattern: /…/"],
    exists,
  ]);
}
