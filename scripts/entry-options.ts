import { readFileSync } from "node:fs";

/**
 * The options of Node in the first line of a program, which says how it is meant to be started. Whoever starts it by
 * another way than its first line, to choose the Node that runs it, gives Node the same.
 */
export function entryOptions(file: string): string[] {
  return readFileSync(file, "utf8").split("\n", 1)[0]?.match(/--\S+/gu) ?? [];
}
