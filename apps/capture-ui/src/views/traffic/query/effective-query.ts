import { compileHostPatterns } from "@headworks/host-patterns";
import { parseQuery } from "@headworks/query-language";
import { ApiFailure } from "../../../api.ts";

/** Filters that determine the list besides the text. */
export interface QueryParts {
  readonly q: string;
  readonly pills: readonly PillId[];
  /** Start times, in milliseconds since 1970. */
  readonly range: { readonly fromMs: number; readonly toMs: number } | null;
  /** Host patterns to show exclusively; empty shows all hosts. */
  readonly hosts: readonly string[];
}

export interface PillSpec {
  readonly id: string;
  readonly label: string;
  /** Term of the query language. */
  readonly q: string;
  /** Resource types counted for it. */
  readonly types: readonly string[];
}

/** In screen order: the row may be truncated, so the most used pills come first. */
export const PILLS = [
  { id: "errors", label: "Errors", q: "(status:>=400 OR state:failed)", types: [] },
  { id: "api", label: "API", q: "type:(json|xml|grpc)", types: ["json", "xml", "grpc"] },
  { id: "doc", label: "Doc", q: "type:document", types: ["document"] },
  { id: "js", label: "JS", q: "type:script", types: ["script"] },
  { id: "css", label: "CSS", q: "type:stylesheet", types: ["stylesheet"] },
  { id: "image", label: "Image", q: "type:image", types: ["image"] },
  { id: "font", label: "Font", q: "type:font", types: ["font"] },
  { id: "media", label: "Media", q: "type:media", types: ["media"] },
  { id: "ws", label: "WS", q: "type:websocket", types: ["websocket"] },
  { id: "sse", label: "SSE", q: "type:event-stream", types: ["event-stream"] },
  { id: "grpc", label: "gRPC", q: "type:grpc", types: ["grpc"] },
  { id: "tunnel", label: "Tunnel", q: "type:tunnel", types: ["tunnel"] },
] as const satisfies readonly PillSpec[];

export type PillId = (typeof PILLS)[number]["id"];

/** Reads the `show` parameter of the URL, ignoring unknown names. */
export function readPills(text: string | null): readonly PillId[] {
  const names = (text ?? "").split(",");
  return PILLS.flatMap((pill) => (names.includes(pill.id) ? [pill.id] : []));
}

/** Reads the `time` parameter of the URL, `from-to` in milliseconds. */
export function readRange(text: string | null): QueryParts["range"] {
  const match = /^(\d{1,15})-(\d{1,15})$/u.exec(text ?? "");
  if (match === null) return null;
  const fromMs = Number(match[1]);
  const toMs = Number(match[2]);
  return fromMs < toMs ? { fromMs, toMs } : null;
}

/** A value in query syntax: bare if possible, otherwise quoted. */
export function queryValue(text: string): string {
  if (/^[\p{L}\p{N}_.:/%~=+,;&?#$!-]+$/u.test(text) && !text.startsWith("/") && !text.startsWith("-")) return text;
  return `"${text.replace(/[\\"]/gu, "\\$&")}"`;
}

/** A host pattern (`name`, `.name`, `*.name`, `a*b`) as a query term. */
export function hostTerm(pattern: string): string {
  const name = pattern.trim().toLowerCase();
  if (name.startsWith(".")) return `(host:=${queryValue(name.slice(1))} OR host:*${name})`;
  return name.includes("*") ? `host:${name}` : `host:=${queryValue(name)}`;
}

/** Query terms of a tree node: a host with or without port, and optionally one of its paths. */
export function nodeTerms(name: string, path: string | null): readonly string[] {
  const port = /:(\d{1,5})$/u.exec(name)?.[1];
  const host = port === undefined ? name : name.slice(0, -port.length - 1);
  return [
    `host:=${queryValue(host.replace(/^\[(.*)\]$/u, "$1"))}`,
    ...(port === undefined ? [] : [`port:${port}`]),
    ...(path === null ? [] : [`path:=${queryValue(path)}`]),
  ];
}

/** Combines all parts into one query. `without` omits parts, for counts independent of them. */
export function effectiveQuery(
  parts: QueryParts,
  without: { readonly pills?: boolean; readonly range?: boolean } = {},
): string {
  const terms: string[] = [];
  const text = parts.q.trim();
  const pills = without.pills === true ? [] : PILLS.filter((pill) => parts.pills.includes(pill.id));
  const range = without.range === true ? null : parts.range;
  if (pills.length > 0) {
    const types = pills.filter((pill) => pill.id !== "errors").map((pill) => pill.q);
    const errors = pills.filter((pill) => pill.id === "errors").map((pill) => pill.q);
    // Types are alternatives; "errors" narrows them.
    if (types.length > 0) terms.push(types.length === 1 ? types.join("") : `(${types.join(" OR ")})`);
    terms.push(...errors);
  }
  if (range !== null) {
    terms.push(`time:>=${new Date(range.fromMs).toISOString()}`, `time:<=${new Date(range.toMs).toISOString()}`);
  }
  if (parts.hosts.length > 0) terms.push(`(${parts.hosts.map(hostTerm).join(" OR ")})`);
  if (terms.length === 0) return text;
  if (text !== "") terms.unshift(`(${text})`);
  return terms.join(" ");
}

/** Adds a term to a query with AND, unless already present. */
export function addTerm(q: string, term: string): string {
  const text = q.trim();
  if (text === "") return term;
  if (` ${text} `.includes(` ${term} `)) return text;
  return /\bOR\b/u.test(text) ? `(${text}) ${term}` : `${text} ${term}`;
}

/** A matcher of focus patterns with the proxy's semantics. Hosts may have a port. */
export function focusMatcher(patterns: readonly string[]): (host: string) => boolean {
  const matcher = compileHostPatterns(patterns, "focus");
  const seen = new Map<string, boolean>();
  return (host) => {
    let known = seen.get(host);
    if (known === undefined) {
      known = matcher.matches(host.replace(/(?<=^[^:]*|\]):\d+$/u, ""));
      // Bounds memory for traffic with many random host names.
      if (seen.size > 5000) seen.clear();
      seen.set(host, known);
    }
    return known;
  };
}

/** Throws the service's error for an invalid query without a request, by the same parser. */
export function refuseUnreadable(q: string): void {
  const parsed = parseQuery(q);
  if (parsed.ok) return;
  const { message, start } = parsed.error;
  throw new ApiFailure(400, "VALIDATION_ERROR", `${message} (at character ${start + 1})`);
}
