// Tested by check-routes.test.ts
import { checkPattern } from "@headworks/linear-pattern";
import { checkPath, type PathFault } from "./request-path.ts";

/** Steps from the root of a document to what an issue is about. */
export type Place = readonly (string | number)[];

/** What a reader of the document should change, for each reason to refuse a path. */
const FAULTS: Readonly<Record<PathFault, string>> = {
  empty: "is empty",
  "not-absolute": "must begin with /",
  "forbidden-character": "has a space or a control character, which no request path has; write it percent-encoded",
  "not-ascii": "has characters beyond ASCII, which no request path has; write their UTF-8 bytes percent-encoded",
  backslash: "has a backslash; requests with one are refused",
  fragment: "has a #, which clients never send",
  "dot-segment": "has a segment . or .., and requests with one are refused",
  "bad-percent-encoding": "has a % without two hexadecimal digits behind it",
  "encoded-nul": "has %00; requests with that are refused",
  "overlong-encoding": "has a character in overlong UTF-8; requests with one are refused",
};

/** What is wrong with a text as a path without a query, to be put behind what it is; undefined for nothing. */
export function pathProblem(path: string): string | undefined {
  const fault = checkPath(path);
  if (fault !== "ok") return FAULTS[fault];
  return path.includes("?") ? "has a ?, which ends a path" : undefined;
}

/** What is wrong with a target, as a sentence that begins with it. */
export function faultSentence(fault: PathFault): string {
  return `The target ${FAULTS[fault]}`;
}

/** Says what is wrong with a pattern for paths, and at which character; undefined for a pattern that is fine. */
export function patternProblem(source: string): string | undefined {
  if (/[^\x00-\x7f]/.test(source)) return `the pattern ${FAULTS["not-ascii"]}`;
  const check = checkPattern(source);
  return check.ok
    ? undefined
    : `the pattern cannot be used: at character ${check.error.start + 1}, ${check.error.message}`;
}
