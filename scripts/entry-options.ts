import { readFileSync } from "node:fs";

/** Node's options in a program's first line, for callers that choose their own Node. */
export function entryOptions(file: string): string[] {
  return readFileSync(file, "utf8").split("\n", 1)[0]?.match(/--\S+/gu) ?? [];
}
