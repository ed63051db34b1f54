import { compilePattern, type LinearPattern } from "./pattern.ts";

/** Whether texts contain what a pattern describes. */
export type TextPredicate = Pick<LinearPattern, "requiredText" | "test" | "search">;

/** Texts are examined up to this length, which bounds the time one of them can take: traffic waits for conditions. */
const MAX_EXAMINED_LENGTH = 1_048_576;

/**
 * Compiles a pattern into the predicate that the conditions of rules ask texts of any length with: as
 * {@link compilePattern}, but of each text only its first 1,048,576 UTF-16 units count.
 */
export function compileTextPredicate(source: string, flags: string, maxWork?: number): TextPredicate {
  const compiled = compilePattern(source, flags, maxWork);
  const examined = (text: string): string =>
    text.length > MAX_EXAMINED_LENGTH ? text.slice(0, MAX_EXAMINED_LENGTH) : text;
  return {
    requiredText: compiled.requiredText,
    test: (text) => compiled.test(examined(text)),
    search: (text) => compiled.search(examined(text)),
  };
}
