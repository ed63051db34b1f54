import { createHash } from "node:crypto";
import type { ServingMatch } from "@headworks/capture-contract";
import { parseQuery } from "@headworks/http-fields";

export interface MatchFacts {
  readonly method: string;
  readonly scheme: string;
  /** With the effective port. */
  readonly authority: string;
  /** Without the query. */
  readonly path: string;
  /** Decoded and sorted, without ignored parameters; repeated names stay. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** SHA-256 of the body as sent; empty without a body, and where bodies do not count. */
  readonly body: string;
}

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

/** `target` is path and query as sent. */
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

/** Equal for requests that count as the same. */
export function matchKey(parts: MatchParts, facts: MatchFacts): string {
  // Without the host, the port would still distinguish http from https.
  return JSON.stringify([
    parts.method ? facts.method : null,
    parts.scheme ? facts.scheme : null,
    parts.host ? facts.authority : null,
    parts.path ? facts.path : null,
    parts.query ? facts.query : null,
    parts.body ? facts.body : null,
  ]);
}

/** Empty for no body. */
export function bodyDigest(bytes: Uint8Array | undefined): string {
  return bytes === undefined || bytes.length === 0 ? "" : createHash("sha256").update(bytes).digest("hex");
}

/** The distance of two requests, and their differences in words. */
export interface Difference {
  readonly distance: number;
  readonly differences: readonly string[];
}

const MAX_QUOTED_LENGTH = 80;

export function differenceOf(parts: MatchParts, recorded: MatchFacts, requested: MatchFacts): Difference {
  const differences: string[] = [];
  let distance = 0;
  const note = (weight: number, text: string): void => {
    distance += weight;
    differences.push(text);
  };
  if (parts.method && recorded.method !== requested.method) {
    note(3, differs("method", recorded.method, requested.method));
  }
  if (parts.scheme && recorded.scheme !== requested.scheme) {
    note(1, differs("scheme", recorded.scheme, requested.scheme));
  }
  if (parts.host && recorded.authority !== requested.authority) {
    note(5, differs("host", recorded.authority, requested.authority));
  }
  if (parts.path && recorded.path !== requested.path) {
    note(2 + 2 * segmentDistance(recorded.path, requested.path), differs("path", recorded.path, requested.path));
  }
  if (parts.query) for (const text of queryDifferences(recorded.query, requested.query)) note(1, text);
  if (parts.body && recorded.body !== requested.body) note(1, "the body differs");
  return { distance, differences };
}

function differs(what: string, recorded: string, requested: string): string {
  return `${what}: recorded \`${recorded.slice(0, MAX_QUOTED_LENGTH)}\`, requested \`${requested.slice(0, MAX_QUOTED_LENGTH)}\``;
}

function segmentDistance(left: string, right: string): number {
  const a = left.split("/", 64);
  const b = right.split("/", 64);
  let distance = 0;
  for (let index = 0; index < Math.max(a.length, b.length); index += 1) if (a[index] !== b[index]) distance += 1;
  return distance;
}

const MAX_PARAMETERS = 50;

function queryDifferences(recorded: MatchFacts["query"], requested: MatchFacts["query"]): string[] {
  const before = valuesByName(recorded);
  const now = valuesByName(requested);
  const names = [...new Set([...before.keys(), ...now.keys()])].slice(0, MAX_PARAMETERS);
  return names.flatMap((name) => {
    const was = before.get(name);
    const is = now.get(name);
    if (was === is) return [];
    const shown = name.slice(0, MAX_QUOTED_LENGTH);
    if (is === undefined) return [`query \`${shown}\` is missing`];
    if (was === undefined) return [`query \`${shown}\` was not recorded`];
    return [differs(`query \`${shown}\``, was, is)];
  });
}

function valuesByName(query: MatchFacts["query"]): Map<string, string> {
  const values = new Map<string, string>();
  for (const [name, value] of query) values.set(name, values.has(name) ? `${values.get(name)}, ${value}` : value);
  return values;
}
