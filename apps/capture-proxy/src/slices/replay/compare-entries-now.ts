import type { DiffOptions, EntryDiff } from "@headworks/capture-contract";
import { compareEntries, compileHeaderNames, compileIgnoredPaths, type DiffSide } from "@headworks/entry-diff";

export interface Comparison {
  readonly left: DiffSide;
  readonly right: DiffSide;
  readonly options: DiffOptions;
}

/** Requires checked options. */
export function compareEntriesNow({ left, right, options }: Comparison): EntryDiff {
  const compiled = compileIgnoredPaths(options.ignore_paths ?? []);
  if (!compiled.ok) throw new TypeError("The paths to ignore cannot be read");
  return compareEntries(left, right, {
    ignored: compiled.paths,
    shape: options.shape ?? false,
    ignoredHeaders: compileHeaderNames(options.ignore_headers),
  });
}
