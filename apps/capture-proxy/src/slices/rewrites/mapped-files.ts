import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { isAbsolute, join, normalize, relative, resolve, sep } from "node:path";

/** `reason` is shown in traces; it quotes the rule's path, never one of the disk. */
export type FileSearch =
  | { readonly kind: "found"; readonly path: string; readonly bytes: Buffer }
  | { readonly kind: "refused" | "missing" | "too-large"; readonly reason: string };

export interface MappedFiles {
  /** Why a rule cannot have this path, whether or not the file exists; undefined when it can. */
  problem(path: string): string | undefined;
  /** Reads a file, or in a folder the file for the rest of a URL's path (`index.html` for a directory). */
  read(path: string, rest: string | undefined): Promise<FileSearch>;
}

const INDEX = "index.html";

/** `roots` are absolute. Files must lie below a root after all symbolic links are resolved. */
export function createMappedFiles(roots: () => readonly string[], limitBytes: () => number): MappedFiles {
  const located = (path: string): string | undefined => {
    const all = roots();
    const absolute = isAbsolute(path) ? normalize(path) : join(all[0] ?? sep, path);
    return all.some((root) => isInside(resolve(root), absolute)) ? absolute : undefined;
  };
  return {
    problem: (path) => {
      if (path.includes("\0")) return "must not contain NUL";
      if (located(path) !== undefined) return undefined;
      return `must lie in one of the directories of map_file_dirs or in ${roots()[0] ?? ""}`;
    },
    read: async (path, rest) => {
      const base = located(path);
      if (base === undefined) return { kind: "refused", reason: `${path} is outside the directories for rules` };
      const inner = rest === undefined ? "" : innerPath(rest);
      if (inner === undefined) return { kind: "refused", reason: `${rest} is not a path inside ${path}` };
      const requested = rest === undefined ? base : join(base, inner);
      const named = rest === undefined ? path : join(path, inner);
      return readConfined(
        { requested, named, allowed: rest === undefined ? roots() : [base], roots: roots() },
        limitBytes(),
      );
    },
  };
}

interface FileRequest {
  readonly requested: string;
  /** The path as messages quote it. */
  readonly named: string;
  readonly allowed: readonly string[];
  readonly roots: readonly string[];
}

async function readConfined(
  { requested, named, allowed, roots }: FileRequest,
  limitBytes: number,
): Promise<FileSearch> {
  const missing: FileSearch = { kind: "missing", reason: `${named} does not exist` };
  const real = await realpath(requested).catch(() => undefined);
  if (real === undefined) return missing;
  const isConfined = (await isInsideAny(real, allowed)) && (await isInsideAny(real, roots));
  if (!isConfined) return { kind: "refused", reason: `${named} leads out of the directories for rules` };
  // NONBLOCK: opening a pipe would wait for a writer. NOFOLLOW: `real` has no links unless one was created meanwhile.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
  const file = await open(real, flags).catch(() => undefined);
  if (file === undefined) return { kind: "missing", reason: `${named} cannot be read` };
  try {
    const facts = await file.stat();
    if (facts.isDirectory()) {
      if (requested.endsWith(`${sep}${INDEX}`)) return missing;
      return await readConfined(
        { requested: join(requested, INDEX), named: join(named, INDEX), allowed, roots },
        limitBytes,
      );
    }
    if (!facts.isFile()) return { kind: "refused", reason: `${named} is not a file` };
    if (facts.size > limitBytes) {
      return { kind: "too-large", reason: `${named} is larger than ${limitBytes} bytes (rewrite_body_limit)` };
    }
    return { kind: "found", path: real, bytes: await file.readFile() };
  } finally {
    await file.close();
  }
}

async function isInsideAny(real: string, directories: readonly string[]): Promise<boolean> {
  for (const directory of directories) {
    const root = await realpath(directory).catch(() => undefined);
    if (root !== undefined && isInside(root, real)) return true;
  }
  return false;
}

function isInside(root: string, path: string): boolean {
  const relativePath = relative(root, path);
  return (
    relativePath === "" || (relativePath !== ".." && !relativePath.startsWith(`..${sep}`) && !isAbsolute(relativePath))
  );
}

/** The rest of a URL's path as a file path; undefined for a path that escapes. */
function innerPath(rest: string): string | undefined {
  const names: string[] = [];
  for (const segment of rest.split("/")) {
    if (segment === "") continue;
    let name: string;
    try {
      name = decodeURIComponent(segment);
    } catch {
      return undefined;
    }
    if (name === "." || name === ".." || /[/\\\0]/.test(name)) return undefined;
    names.push(name);
  }
  return names.join(sep);
}
