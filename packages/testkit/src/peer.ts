import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

/** A program that tests compare against. Give `skip` to node:test and `path` to {@link spawnProcess}. */
export interface Peer {
  path: string;
  skip: string | false;
}

/**
 * Looks for a program on the PATH: the first of these names that is there. When none is, one line is printed and `skip`
 * says why; with `CI=true` it throws instead, so that no check silently disappears there.
 */
export function peer(...names: readonly [string, ...string[]]): Peer {
  for (const name of names) {
    const path = findOnPath(name);
    if (path !== undefined) return { path, skip: false };
  }
  const skip = names.length === 1 ? `${names[0]} is not installed` : `none of ${names.join(", ")} is installed`;
  if (process.env["CI"] === "true") throw new Error(`${skip}, and with CI=true nothing may be skipped`);
  process.stdout.write(`# skipping: ${skip}\n`);
  return { path: "", skip };
}

function findOnPath(name: string): string | undefined {
  const endings = process.platform === "win32" ? (process.env["PATHEXT"] ?? ".EXE").split(";") : [""];
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    for (const ending of endings) {
      const path = join(folder, name + ending);
      if (folder !== "" && isProgram(path)) return path;
    }
  }
  return undefined;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
