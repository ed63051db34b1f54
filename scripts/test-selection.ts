/** The selection of `npm test`. */
export interface TestSelection {
  readonly files: readonly string[];
  /** Options for the runner, unchanged. */
  readonly options: readonly string[];
  /** True if a selected test needs the built UI. */
  readonly needsUi: boolean;
}

/**
 * Chooses test files: all of them, or those whose path contains one of the arguments. Arguments that begin with a dash
 * go to the runner (`--test-name-pattern=…`).
 */
export function selectTests(sources: readonly string[], args: readonly string[]): TestSelection {
  const options = args.filter((argument) => argument.startsWith("-"));
  const filters = args.filter((argument) => !argument.startsWith("-")).map((filter) => filter.replace(/^\.\//u, ""));
  const tests = sources.filter((file) => /^(?:apps|packages|scripts|e2e)\/.*\.test\.ts$/u.test(file));
  const files = filters.length === 0 ? tests : tests.filter((file) => filters.some((filter) => file.includes(filter)));
  return { files, options, needsUi: files.some((file) => file.startsWith("e2e/")) };
}
