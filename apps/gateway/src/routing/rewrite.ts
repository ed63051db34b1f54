import type { Rewrite, Route } from "@headworks/gateway-contract";
import { barePrefix, compilePathPattern, hasPrefix } from "./path-template.ts";
import { checkPath } from "./request-path.ts";

const REFERENCE = /\$(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|\{(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*))\})/g;

/** The parts of a request that a rewrite inspects; a `RequestContext` has them. */
export interface RewriteRequest {
  readonly target: string;
  readonly path: string;
  readonly query: string | undefined;
  readonly pathParameters: Readonly<Record<string, string>> | undefined;
}

/** Returns the target for the upstream; undefined if the result must not be sent and the request is refused. */
export type TargetRewrite = (request: RewriteRequest) => string | undefined;

/**
 * Compiles the rewrite of a proxy route. The query is kept unchanged. A replacement and the rest of the path are
 * joined by exactly one slash: a leading `//` could be taken for a host.
 */
export function compileRewrite(route: Route): TargetRewrite {
  const rewrite = route.action.type === "proxy" ? route.action.rewrite : undefined;
  if (rewrite === undefined) return (request) => request.target;
  const rewritePath = compilePathRewrite(rewrite, route);
  return (request) => {
    const path = rewritePath(request);
    return path === undefined || request.query === undefined ? path : `${path}?${request.query}`;
  };
}

type PathRewrite = (request: RewriteRequest) => string | undefined;

function compilePathRewrite(rewrite: Rewrite, route: Route): PathRewrite {
  switch (rewrite.type) {
    case "strip_prefix":
      return replacePrefix(route.match.path.value, "");
    case "replace_prefix":
      return replacePrefix(rewrite.prefix, rewrite.replacement);
    case "regex":
      return replacePattern(rewrite.pattern, parseSubstitution(rewrite.substitution));
  }
}

/** The result needs no check: it is cut at segment boundaries, and the replacement is validated. */
function replacePrefix(prefix: string, replacement: string): PathRewrite {
  const bare = barePrefix(prefix);
  return ({ path }) => {
    if (!hasPrefix(path, bare)) return path;
    const rewritten = join(replacement, path.slice(bare.length));
    return rewritten === "" ? "/" : rewritten;
  };
}

/** Replaces the first match. Groups can cut a path anywhere, so the result is checked like a request target. */
function replacePattern(source: string, pieces: readonly SubstitutionPiece[]): PathRewrite {
  const pattern = compilePathPattern(source);
  return ({ path, pathParameters }) => {
    const match = pattern.match(path);
    if (match === undefined) return path;
    // The operator does not want upstreams to see an unrewritten path, whatever the rewrite costs.
    if (match === "gave-up") return undefined;
    let rewritten = path.slice(0, match.start);
    for (const piece of pieces) {
      if (piece.kind === "text") rewritten = join(rewritten, piece.text);
      else if (piece.kind === "group") rewritten = join(rewritten, match.groups[piece.number] ?? "");
      else rewritten = join(rewritten, match.named[piece.name] ?? pathParameters?.[piece.name] ?? "");
    }
    rewritten = join(rewritten, path.slice(match.end));
    if (!rewritten.startsWith("/")) rewritten = `/${rewritten}`;
    return checkPath(rewritten) === "ok" ? rewritten : undefined;
  };
}

/** Joins two parts with a single slash if both have one, or if `rest` begins the path. */
function join(start: string, rest: string): string {
  if (!rest.startsWith("/") || !(start === "" || start.endsWith("/"))) return start + rest;
  let at = 1;
  while (rest.charCodeAt(at) === 0x2f) at += 1;
  return start + rest.slice(start === "" ? at - 1 : at);
}

/** A piece of a substitution: text, or a reference to a group or a path parameter. */
type SubstitutionPiece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "group"; readonly number: number }
  | { readonly kind: "name"; readonly name: string };

/** Parses `$1`, `${1}`, `$name` and `${name}`; any other `$` is literal. `$0` is the whole match. */
export function parseSubstitution(source: string): readonly SubstitutionPiece[] {
  const pieces: SubstitutionPiece[] = [];
  let at = 0;
  for (const match of source.matchAll(REFERENCE)) {
    if (match.index > at) pieces.push({ kind: "text", text: source.slice(at, match.index) });
    const number = match[1] ?? match[3];
    const name = match[2] ?? match[4];
    if (number !== undefined) pieces.push({ kind: "group", number: Number(number) });
    else if (name !== undefined) pieces.push({ kind: "name", name });
    at = match.index + match[0].length;
  }
  if (at < source.length) pieces.push({ kind: "text", text: source.slice(at) });
  return pieces;
}
