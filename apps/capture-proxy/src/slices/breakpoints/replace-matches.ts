import { checkPattern, compilePattern, readReplacement } from "@headworks/linear-pattern";
import { ApiError, validationError } from "#api/api-error.ts";

/** Replaces every match of a caller's pattern; throws 400 for a pattern or replacement that cannot be read. */
export function replaceMatches(text: string, source: string, replacement: string, path: string): string {
  const check = checkPattern(source);
  if (!check.ok) {
    throw validationError([{ path, message: `${check.error.message}, at character ${check.error.start + 1}` }]);
  }
  const pattern = compilePattern(source);
  const read = readReplacement(replacement, pattern);
  if (!read.ok) {
    throw validationError([
      {
        path: path.replace(/[^/]*$/, "replacement"),
        message: `${read.error.message}, at character ${read.error.start + 1}`,
      },
    ]);
  }
  const replaced = pattern.replaceAll(text, read.replacement);
  if (replaced === "gave-up") throw new ApiError("VALIDATION_ERROR", `${path}: takes too long with this text`);
  return replaced.text;
}
