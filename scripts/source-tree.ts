import { existsSync, readdirSync } from "node:fs";
import { join, relative, sep } from "node:path";

/** The folders of the repository that hold source code. */
const SOURCE_FOLDERS = ["apps", "packages", "e2e", "bench", "scripts"];
const SKIPPED_NAMES = new Set(["node_modules", "dist", "coverage"]);
/** Drivers of benchmarked third-party proxies, and results. */
const SKIPPED_PATHS = new Set(["bench/peers", "bench/results"]);

/** The repository this script belongs to. */
export const repositoryRoot = join(import.meta.dirname, "..");

/** A violation; `message` says how to fix it. */
export interface Problem {
  /** Path from the repository root, with forward slashes; `:line` appended where a line is known. */
  readonly where: string;
  readonly message: string;
}

/** Every file below the source folders, as sorted paths from the root with forward slashes. */
export function sourceFiles(root: string): string[] {
  return SOURCE_FOLDERS.flatMap((folder) => filesBelow(root, folder)).toSorted();
}

/** Every file below one folder; an absent folder has none. Builds, dependencies and hidden entries are left out. */
export function filesBelow(root: string, folder: string): string[] {
  const start = join(root, folder);
  if (!existsSync(start)) return [];
  return readdirSync(start, { withFileTypes: true }).flatMap((entry) => {
    const path = relative(root, join(start, entry.name)).split(sep).join("/");
    if (entry.name.startsWith(".") || SKIPPED_NAMES.has(entry.name) || SKIPPED_PATHS.has(path)) return [];
    return entry.isDirectory() ? filesBelow(root, path) : entry.isFile() ? [path] : [];
  });
}

/** Prints problems sorted by path and sets exit code 1; prints `success` if there are none. */
export function reportProblems(problems: readonly Problem[], allWell: string): void {
  for (const { where, message } of problems.toSorted((a, b) => a.where.localeCompare(b.where))) {
    console.error(`${where}\n    ${message}`);
  }
  if (problems.length === 0) console.log(allWell);
  else process.exitCode = 1;
}
