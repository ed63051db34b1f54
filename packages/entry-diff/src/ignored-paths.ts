import { parseJsonPath, type JsonStep } from "@headworks/json";

/** Path from the root as names and indexes. */
export type JsonPlace = readonly (string | number)[];

export interface IgnoredPaths {
  readonly isEmpty: boolean;
  matches(place: JsonPlace): boolean;
}

/** An invalid pattern by its index. */
export interface PathIssue {
  readonly index: number;
  readonly message: string;
}

/** Parses JSONPath without filters (`$.items[*].at`, `$..etag`) or JSON Pointers (`/items/0/at`). */
export function compileIgnoredPaths(
  patterns: readonly string[],
): { readonly ok: true; readonly paths: IgnoredPaths } | { readonly ok: false; readonly issues: readonly PathIssue[] } {
  const issues: PathIssue[] = [];
  const compiled: (readonly JsonStep[])[] = [];
  for (const [index, pattern] of patterns.entries()) {
    const steps = stepsOf(pattern.trim());
    if (typeof steps === "string") issues.push({ index, message: steps });
    else compiled.push(steps);
  }
  if (issues.length > 0) return { ok: false, issues };
  return {
    ok: true,
    paths: {
      isEmpty: compiled.length === 0,
      matches: (place) => compiled.some((steps) => reaches(steps, place)),
    },
  };
}

function stepsOf(pattern: string): readonly JsonStep[] | string {
  if (pattern.startsWith("/")) {
    if (/~(?![01])/u.test(pattern)) return "a JSON Pointer has only ~0 and ~1";
    return pattern
      .slice(1)
      .split("/")
      .map((token) => ({ kind: "member", name: token.replaceAll("~1", "/").replaceAll("~0", "~") }));
  }
  const parsed = parseJsonPath(pattern);
  return parsed.ok ? parsed.steps : parsed.message;
}

/** Whether the steps match the path. All partial matches advance together, so a pattern costs its length per step. */
function reaches(steps: readonly JsonStep[], place: JsonPlace): boolean {
  let open = new Set([0]);
  for (const key of place) {
    const next = new Set<number>();
    for (const at of open) {
      const step = steps[at];
      if (step === undefined) continue;
      if (step.kind === "descendants") next.add(at);
      if (accepts(step, key)) next.add(at + 1);
    }
    open = next;
  }
  return open.has(steps.length);
}

function accepts(step: JsonStep, key: string | number): boolean {
  switch (step.kind) {
    case "member":
      // A pointer does not distinguish object members from list indexes.
      return step.name === String(key);
    case "element":
      return step.index === key;
    case "children":
      return true;
    case "descendants":
      return step.name === null || step.name === key;
  }
}
