import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** As many links one after the other as Linux follows. */
const MAX_LINKS = 40;

/**
 * The one name of a place, whichever way was taken to it: all links resolved, also those to what is not there yet. Of what
 * is not there, the nearest directory above it that is decides. Throws what the file system says, other than that.
 */
export function realPlace(path: string): string {
  return followed(resolve(path), MAX_LINKS);
}

function followed(path: string, links: number): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const parent = dirname(path);
  if (parent === path) return path;
  const target = links > 0 ? linkTarget(path) : undefined;
  return target === undefined
    ? join(followed(parent, links), basename(path))
    : followed(resolve(parent, target), links - 1);
}

function linkTarget(path: string): string | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? readlinkSync(path) : undefined;
}
