import { createHash } from "node:crypto";
import type { ServingMatch } from "@headworks/capture-contract";
import { parseQuery } from "@headworks/http-fields";

/** What of a request a served session can look at. */
export interface MatchFacts {
  readonly method: string;
  readonly scheme: string;
  /** With the port in effect. */
  readonly authority: string;
  /** Without the query. */
  readonly path: string;
  /** Decoded, without the ignored ones, sorted; repeated names stay. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** SHA-256 of the body's bytes as they were sent; empty without one, and where bodies do not matter. */
  readonly body: string;
}

/** Which parts of a request decide, every default filled in. */
export type MatchParts = Required<ServingMatch>;

export function matchParts(match: ServingMatch = {}): MatchParts {
  return {
    method: match.method ?? true,
    scheme: match.scheme ?? false,
    host: match.host ?? true,
    path: match.path ?? true,
    query: match.query ?? true,
    ignore_query: match.ignore_query ?? [],
    body: match.body ?? false,
  };
}

const PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443 };

/** The facts of a request; `target` is path and query as sent. */
export function matchFacts(
  parts: MatchParts,
  request: {
    readonly method: string;
    readonly scheme: string;
    readonly host: string;
    readonly port: number | undefined;
    readonly target: string;
    readonly body: string;
  },
): MatchFacts {
  const mark = request.target.indexOf("?");
  const ignored = new Set(parts.ignore_query);
  const query = parseQuery(mark === -1 ? "" : request.target.slice(mark))
    .filter(({ name }) => !ignored.has(name))
    .map(({ name, value }) => [name, value] as const)
    .sort(([name, value], [otherName, otherValue]) =>
      name === otherName ? compare(value, otherValue) : compare(name, otherName),
    );
  return {
    method: request.method,
    scheme: request.scheme,
    authority: `${request.host}:${request.port ?? PORTS[request.scheme] ?? 0}`,
    path: mark === -1 ? request.target : request.target.slice(0, mark),
    query,
    body: request.body,
  };
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The same text for requests that count as the same. */
export function matchKey(parts: MatchParts, facts: MatchFacts): string {
  // Without the host, a port would still tell http and https apart.
  return JSON.stringify([
    parts.method ? facts.method : null,
    parts.scheme ? facts.scheme : null,
    parts.host ? facts.authority : null,
    parts.path ? facts.path : null,
    parts.query ? facts.query : null,
    parts.body ? facts.body : null,
  ]);
}

/** Digest of a body; the empty text for none. */
export function bodyDigest(bytes: Uint8Array | undefined): string {
  return bytes === undefined || bytes.length === 0 ? "" : createHash("sha256").update(bytes).digest("hex");
}

/** How far two requests are apart, and what tells them apart, for people. */
export interface Difference {
  readonly distance: number;
  readonly differences: readonly string[];
}

const SHOWN = 80;

/** Compares the parts that decide. */
export function differenceOf(parts: MatchParts, recorded: MatchFacts, asked: MatchFacts): Difference {
  const differences: string[] = [];
  let distance = 0;
  const note = (weight: number, text: string): void => {
    distance += weight;
    differences.push(text);
  };
  if (parts.method && recorded.method !== asked.method) note(3, differs("method", recorded.method, asked.method));
  if (parts.scheme && recorded.scheme !== asked.scheme) note(1, differs("scheme", recorded.scheme, asked.scheme));
  if (parts.host && recorded.authority !== asked.authority) {
    note(5, differs("host", recorded.authority, asked.authority));
  }
  if (parts.path && recorded.path !== asked.path) {
    note(2 + 2 * segmentDistance(recorded.path, asked.path), differs("path", recorded.path, asked.path));
  }
  if (parts.query) for (const text of queryDifferences(recorded.query, asked.query)) note(1, text);
  if (parts.body && recorded.body !== asked.body) note(1, "the body is another one");
  return { distance, differences };
}

function differs(what: string, recorded: string, asked: string): string {
  return `${what}: recorded \`${recorded.slice(0, SHOWN)}\`, asked \`${asked.slice(0, SHOWN)}\``;
}

function segmentDistance(left: string, right: string): number {
  const a = left.split("/", 64);
  const b = right.split("/", 64);
  let distance = 0;
  for (let index = 0; index < Math.max(a.length, b.length); index += 1) if (a[index] !== b[index]) distance += 1;
  return distance;
}

const MAX_PARAMETERS = 50;

function queryDifferences(recorded: MatchFacts["query"], asked: MatchFacts["query"]): string[] {
  const before = valuesByName(recorded);
  const now = valuesByName(asked);
  const names = [...new Set([...before.keys(), ...now.keys()])].slice(0, MAX_PARAMETERS);
  return names.flatMap((name) => {
    const was = before.get(name);
    const is = now.get(name);
    if (was === is) return [];
    const shown = name.slice(0, SHOWN);
    if (is === undefined) return [`query \`${shown}\` is missing`];
    if (was === undefined) return [`query \`${shown}\` was not there`];
    return [differs(`query \`${shown}\``, was, is)];
  });
}

function valuesByName(query: MatchFacts["query"]): Map<string, string> {
  const values = new Map<string, string>();
  for (const [name, value] of query) values.set(name, values.has(name) ? `${values.get(name)}, ${value}` : value);
  return values;
}
