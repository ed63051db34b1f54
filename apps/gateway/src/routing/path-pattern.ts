import { compilePattern, type LinearPattern } from "@headworks/linear-pattern";

/**
 * Steps that one path may cost a pattern. Enough for a path as long as a head may be under any pattern people write;
 * the few that need more would hold up every other request.
 */
const MAX_WORK = 500_000;

/** Compiles a pattern of the document that runs on paths of clients. */
export function compilePathPattern(source: string): LinearPattern {
  return compilePattern(source, "", MAX_WORK);
}
