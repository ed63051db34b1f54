import { compilePattern, type LinearPattern } from "./pattern.ts";

export type TextPredicate = Pick<LinearPattern, "requiredText" | "test" | "search">;

/** Limit of the examined text, which bounds the time of a condition on traffic. */
const MAX_EXAMINED_LENGTH = 1_048_576;

/**
 * Compiles a pattern into a predicate for conditions of rules: as {@link compilePattern}, but only the first
 * 1,048,576 UTF-16 units of a text count.
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
