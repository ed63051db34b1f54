import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

/** A workspace of the repository. */
export interface Workspace {
  /** Folder from the root, such as `packages/http1`. */
  readonly folder: string;
  readonly name: string;
  /** Names of its dependencies, for build and run time; workspaces and others. */
  readonly dependencies: readonly string[];
  /** Export subpaths (`.`, `./client`) with the file each leads to, from the root. */
  readonly entries: ReadonlyMap<string, string>;
  /** True if files of other folders are imported as `#folder/file.ts`. */
  readonly hasHashImports: boolean;
}

interface Manifest {
  readonly name?: string;
  readonly exports?: Readonly<Record<string, unknown>>;
  readonly imports?: Readonly<Record<string, unknown>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** Reads every workspace below `apps/` and `packages/`. */
export function readWorkspaces(root: string): Workspace[] {
  return ["apps", "packages"].flatMap((parent) => {
    const start = join(root, parent);
    if (!existsSync(start)) return [];
    return readdirSync(start)
      .map((folder) => posix.join(parent, folder))
      .filter((folder) => existsSync(join(root, folder, "package.json")))
      .map((folder) => readWorkspace(root, folder));
  });
}

/** The workspace of a file; undefined for scripts, end-to-end tests and benchmarks. */
export function workspaceOf(workspaces: readonly Workspace[], file: string): Workspace | undefined {
  return workspaces.find((workspace) => file.startsWith(`${workspace.folder}/`));
}

function readWorkspace(root: string, folder: string): Workspace {
  const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as Manifest;
  const entries = new Map<string, string>();
  for (const [subpath, target] of Object.entries(manifest.exports ?? {})) {
    if (typeof target === "string") entries.set(subpath, posix.join(folder, target));
  }
  return {
    folder,
    name: manifest.name ?? folder,
    dependencies: Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }),
    entries,
    hasHashImports: manifest.imports !== undefined,
  };
}
