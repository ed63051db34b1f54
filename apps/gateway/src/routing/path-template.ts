import { checkPattern, compilePattern, type LinearPattern } from "@headworks/linear-pattern";
import { canonicalTarget, checkPath, type PathFault } from "./request-path.ts";

/** Work limit of a pattern for one path: enough for the longest path under any usual pattern. */
const MAX_WORK = 500_000;

/** One segment of an exact path: literal text, or the name of a parameter. */
export type TemplateSegment =
  | { readonly kind: "static"; readonly text: string }
  | { readonly kind: "parameter"; readonly name: string };

/** Receives the parameters of the matched path. */
export interface ParameterSink {
  pathParameters: Readonly<Record<string, string>> | undefined;
}

const PARAMETER = /^\{([A-Za-z_][A-Za-z0-9_]*)\}$/;

/**
 * Parses the value of an exact path. A segment `{name}` matches any non-empty segment; other segments are literal.
 * Returns a text that describes the problem of an invalid value.
 */
export function parseTemplate(value: string): readonly TemplateSegment[] | string {
  const names = new Set<string>();
  const segments: TemplateSegment[] = [];
  for (const text of canonicalTarget(value).slice(1).split("/")) {
    if (!text.includes("{") && !text.includes("}")) {
      segments.push({ kind: "static", text });
      continue;
    }
    const name = PARAMETER.exec(text)?.[1];
    if (name === undefined) {
      return `"${text}" is no parameter: one takes a whole segment, written {name} with letters, digits and _`;
    }
    if (names.has(name)) return `the parameter {${name}} stands there twice`;
    names.add(name);
    segments.push({ kind: "parameter", name });
  }
  return segments;
}

/** Whether a path matches a template; `PathIndex` does it for many templates at once. */
export function templateTakes(segments: readonly TemplateSegment[], path: string): boolean {
  const given = path.slice(1).split("/");
  return (
    given.length === segments.length &&
    segments.every((segment, at) => (segment.kind === "static" ? segment.text === given[at] : given[at] !== ""))
  );
}

/** The template with unnamed parameters: templates with equal forms match the same paths. */
export function templateForm(segments: readonly TemplateSegment[]): string {
  return segments.map((segment) => (segment.kind === "static" ? `/${segment.text}` : "/{}")).join("");
}

export function parameterNames(segments: readonly TemplateSegment[]): string[] {
  return segments.flatMap((segment) => (segment.kind === "parameter" ? [segment.name] : []));
}

/**
 * A prefix without trailing slashes: `/v1/` is `/v1`, and `/` is empty. A last segment of stars only, which other
 * gateways use for everything below, is removed as well: `/v1/*` is `/v1`.
 */
export function barePrefix(prefix: string): string {
  const path = canonicalTarget(prefix).replace(/\/\*{1,2}$/, "");
  let end = path.length;
  while (end > 0 && path.charCodeAt(end - 1) === 0x2f) end -= 1;
  return path.slice(0, end);
}

/** Whether the path is the bare prefix, or continues after it with a slash: `/v1` matches `/v1/x`, not `/v10`. */
export function hasPrefix(path: string, bare: string): boolean {
  return path.startsWith(bare) && (path.length === bare.length || path.charCodeAt(bare.length) === 0x2f);
}

/** Compiles a pattern that runs on paths of clients. */
export function compilePathPattern(source: string): LinearPattern {
  return compilePattern(source, "", MAX_WORK);
}

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

/** The problem of a path in another gateway's syntax, as the end of a sentence; else undefined. */
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
