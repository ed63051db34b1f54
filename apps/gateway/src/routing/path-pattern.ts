import { compilePattern, type LinearPattern } from "@headworks/linear-pattern";

/**
 * Work limit of a pattern for one path: enough for the longest path under any usual pattern; others would delay all
 * other requests.
 */
const MAX_WORK = 500_000;

/** Compiles a pattern that runs on paths of clients. */
export function compilePathPattern(source: string): LinearPattern {
  return compilePattern(source, "", MAX_WORK);
}
