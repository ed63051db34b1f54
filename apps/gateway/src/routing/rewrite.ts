import type { Rewrite, Route } from "@headworks/gateway-contract";
import { compilePathPattern } from "./path-pattern.ts";
import { barePrefix, hasPrefix } from "./path-template.ts";
import { checkPath } from "./request-path.ts";
import { parseSubstitution, type SubstitutionPiece } from "./substitution.ts";

/** The parts of a request that a rewrite looks at; a `RequestContext` has them. */
export interface RewriteRequest {
  readonly target: string;
  readonly path: string;
  readonly query: string | undefined;
  readonly pathParameters: Readonly<Record<string, string>> | undefined;
}

/** Gives the target for the upstream; undefined when there is none that may be sent, so that the request is refused. */
export type TargetRewrite = (request: RewriteRequest) => string | undefined;

/**
 * Compiles the rewrite of a proxy route. The query is put back as it came. Where a replacement meets the rest of the
 * path there is exactly one slash, whatever both bring along: `//` at the beginning could be taken for a host.
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

/** The result needs no second check: it is cut at segment boundaries, and the replacement was checked in the document. */
function replacePrefix(prefix: string, replacement: string): PathRewrite {
  const bare = barePrefix(prefix);
  return ({ path }) => {
    if (!hasPrefix(path, bare)) return path;
    const rewritten = join(replacement, path.slice(bare.length));
    return rewritten === "" ? "/" : rewritten;
  };
}

/** Replaces the first match. Groups can cut a path anywhere, so what comes out is checked like what comes in. */
function replacePattern(source: string, pieces: readonly SubstitutionPiece[]): PathRewrite {
  const pattern = compilePathPattern(source);
  return ({ path, pathParameters }) => {
    const match = pattern.match(path);
    if (match === undefined) return path;
    // An unrewritten path is not what the operator wants the upstream to see, whatever it costs to rewrite it.
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

/** Puts `rest` behind `start`, with one slash where they meet if both have one, or if `rest` begins the path. */
function join(start: string, rest: string): string {
  if (!rest.startsWith("/") || !(start === "" || start.endsWith("/"))) return start + rest;
  let at = 1;
  while (rest.charCodeAt(at) === 0x2f) at += 1;
  return start + rest.slice(start === "" ? at - 1 : at);
}
