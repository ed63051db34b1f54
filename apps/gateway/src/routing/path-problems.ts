import { checkPattern } from "@headworks/linear-pattern";
import { checkPath, type PathFault } from "./request-path.ts";

/** Path from the root of a document to the value of an issue. */
export type FieldPath = readonly (string | number)[];

/** Problem and remedy, for each reason to refuse a path. */
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

/** The problem of a path without a query, as the end of a sentence; undefined for none. */
export function pathProblem(path: string): string | undefined {
  const fault = checkPath(path);
  if (fault !== "ok") return FAULTS[fault];
  return path.includes("?") ? "has a ?, which ends a path" : undefined;
}

/**
 * The problem of a path in another gateway's syntax, which would never match. The end of a sentence; undefined for
 * any other path.
 */
export function otherForm(type: "exact" | "prefix", path: string): string | undefined {
  if (/^(?:~\*?|=)\s*\S/.test(path) || path.startsWith("^")) {
    const bare = path.replace(/^(?:~\*?|=)\s*/, "");
    const kind = path.startsWith("=") ? "exact" : "regex";
    return `is written as a ${kind === "exact" ? "modifier and a path" : "pattern"}: write type: ${kind}, value: "${bare.startsWith("/") && kind === "regex" ? "^" : ""}${bare}"`;
  }
  const named = /\/:([A-Za-z_][A-Za-z0-9_]*)(?=\/|$)/.exec(path)?.[1];
  if (named !== undefined) {
    return `has the segment :${named}, which only stands for itself: write type: exact with {${named}} for any one segment, or type: regex`;
  }
  const angled = /\/<(?:[a-z]+:)?([A-Za-z_][A-Za-z0-9_]*)>(?=\/|$)/.exec(path)?.[1];
  if (angled !== undefined) {
    return `has the segment <${angled}>: write type: exact with {${angled}} for any one segment, or type: regex`;
  }
  if (/\{[^/]*[:*.][^/]*\}?/.test(path)) {
    return "has a parameter with a pattern or for several segments: a parameter is {name} and takes one segment; write type: regex for more, such as ^/users/(?<id>[0-9]+)$";
  }
  if (type === "prefix" && /[{}]/.test(path)) {
    return "has braces; parameters are for exact paths, and below them write type: regex, such as ^/users/(?<id>[^/]+)/";
  }
  if (type === "exact" && /\/\*{1,2}$/.test(path)) {
    return `has * as its last segment, which only stands for itself: write type: prefix, value: "${path.replace(/\/\*+$/, "") || "/"}" for everything below`;
  }
  if (type === "prefix" && /[^/*]\*+$/.test(path)) {
    return `ends in *, which only stands for itself: a prefix ends at a segment; write "${path.replace(/\*+$/, "")}", or type: regex, value: "^${path.replace(/\*+$/, "")}"`;
  }
  const last = type === "prefix" ? path.replace(/\/\*{1,2}$/, "") : path;
  return last.includes("*") || /\[[^\]]*\][+*?]?/.test(last)
    ? "has signs of a pattern, which only stand for themselves: write type: regex, where . and * have to be escaped to stand for themselves"
    : undefined;
}

/** The problem of a target, as a sentence. */
export function faultSentence(fault: PathFault): string {
  return `The target ${FAULTS[fault]}`;
}

/** The problem of a path pattern, with the character position; undefined for none. */
export function patternProblem(source: string): string | undefined {
  if (/[^\x00-\x7f]/.test(source)) return `the pattern ${FAULTS["not-ascii"]}`;
  const check = checkPattern(source);
  return check.ok
    ? undefined
    : `the pattern cannot be used: at character ${check.error.start + 1}, ${check.error.message}`;
}
