import { compilePattern, type LinearPattern } from "@headworks/linear-pattern";
import { canonicalTarget } from "./request-path.ts";

/**
 * Work limit of a pattern for one path: enough for the longest path under any usual pattern; others would delay all
 * other requests.
 */
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
