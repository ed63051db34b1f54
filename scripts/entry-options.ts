import { readFileSync } from "node:fs";

/**
 * Node's options in the first line of a program. A caller that starts the program with a Node of its own choice passes the
 * same options.
 */
export function entryOptions(file: string): string[] {
  return readFileSync(file, "utf8").split("\n", 1)[0]?.match(/--\S+/gu) ?? [];
}
