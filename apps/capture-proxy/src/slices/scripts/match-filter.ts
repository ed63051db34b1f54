import type { ScriptFilter } from "@headworks/capture-contract";
import { compileWildcard } from "@headworks/match-condition";
import type { ErrorDetail } from "#api/api-error.ts";

/** The request of an exchange as filters see it: an absolute URL, a host without port, a path with its query. */
export interface FilteredRequest {
  readonly method: string;
  readonly url: string;
  readonly host: string;
  readonly path: string;
}

export type MatchFilter = (request: FilteredRequest) => boolean;

const PATTERNS = [
  ["url_pattern", "url"],
  ["host_pattern", "host"],
  ["path_pattern", "path"],
] as const;

const matchesAll: MatchFilter = () => true;

/** Compiles a filter; matching takes time linear in the text. A filter with an issue throws a `RangeError`. */
export function compileMatchFilter(filter: ScriptFilter | null): MatchFilter {
  if (filter === null) return matchesAll;
  const method = filter.method?.toUpperCase();
  const patterns = PATTERNS.flatMap(([name, part]) => {
    const pattern = filter[name];
    return pattern === undefined ? [] : [{ part, predicate: compileWildcard(pattern) }];
  });
  return (request) =>
    (method === undefined || request.method.toUpperCase() === method) &&
    patterns.every(({ part, predicate }) => predicate.test(request[part]));
}

/** Why patterns cannot be compiled; paths are relative to the filter. */
export function filterIssues(filter: ScriptFilter | null | undefined): ErrorDetail[] {
  return PATTERNS.flatMap(([name]) => {
    const pattern = filter?.[name];
    if (pattern === undefined) return [];
    try {
      compileWildcard(pattern);
      return [];
    } catch (error) {
      return [{ path: `/${name}`, message: (error as Error).message }];
    }
  });
}
