import type { Action, Rewrite, Route } from "@headworks/gateway-contract";
import { type RawFields, wireText } from "@headworks/http1";
import type { Refusal, Response } from "#request/context.ts";
import { barePrefix, compilePathPattern, hasPrefix } from "./path-template.ts";
import { checkPath } from "./request-path.ts";

/** The parts of a request that a response may depend on; a `RequestContext` has them. */
interface ResponseRequest {
  readonly target: string;
  readonly authority: string | undefined;
}

/** Creates the whole response of a route without an upstream. */
type ResponseAction = (request: ResponseRequest) => Response | Refusal;
type RedirectAction = Extract<Action, { type: "redirect" }>;
type RespondAction = Extract<Action, { type: "respond" }>;

/** Compiles the action of a redirect or respond route. Throws a TypeError for a proxy route. */
export function compileResponseAction(route: Route): ResponseAction {
  const { action } = route;
  if (action.type === "redirect") return compileRedirect(action);
  if (action.type === "respond") return compileRespond(action);
  throw new TypeError(`route ${route.name} is a proxy route and has no response of its own`);
}

const WITHOUT_HOST: Refusal = { code: "bad_request", message: "The request does not say for which host it is" };
const HEADER_SAFE = /^[!-~]+$/;

/**
 * A redirect to `scheme://host:port/path`. Without a host it stays on the request's host, and names it only if the
 * scheme or the port changes; the request's port is then dropped, since it belongs to the old scheme. Without a path,
 * the request's path and query are kept. The body is empty.
 */
function compileRedirect(action: RedirectAction): ResponseAction {
  const { status, path } = action;
  const scheme = action.scheme === undefined ? "" : `${action.scheme}:`;
  const port = action.port === undefined ? "" : `:${action.port}`;
  const fixed = action.host === undefined ? undefined : `${scheme}//${wireText(action.host)}${port}`;
  const namesHost = fixed !== undefined || action.scheme !== undefined || action.port !== undefined;
  return ({ target, authority }) => {
    const tail = path ?? target;
    let location = (fixed ?? "") + (namesHost ? tail : onSameHost(tail));
    if (namesHost && fixed === undefined) {
      if (authority === undefined) return WITHOUT_HOST;
      location = `${scheme}//${withoutPort(authority)}${port}${tail}`;
    }
    if (!HEADER_SAFE.test(location)) return { code: "invalid_redirect_target" };
    return { status, fields: ["Location", location], body: "" };
  };
}

/** A reference that begins with `//` would name another host (RFC 3986 section 4.2); a leading `/.` keeps it a path. */
function onSameHost(tail: string): string {
  return tail.startsWith("//") ? `/.${tail}` : tail;
}

function withoutPort(authority: string): string {
  return authority.replace(/:[0-9]*$/, "");
}

/** Statuses without content that a type could describe (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5). */
const WITHOUT_CONTENT: ReadonlySet<number> = new Set([204, 205, 304]);

/** A fixed response, plain text unless its headers say otherwise. */
function compileRespond(action: RespondAction): ResponseAction {
  const { status } = action;
  const text = action.body ?? "";
  const fields: RawFields = [];
  let hasType = false;
  for (const [name, value] of Object.entries(action.headers ?? {})) {
    fields.push(name, wireText(value));
    hasType ||= name.toLowerCase() === "content-type";
  }
  if (!hasType && !WITHOUT_CONTENT.has(status)) fields.push("Content-Type", plainType(text));
  const body = text === "" ? "" : Buffer.from(text, "utf8");
  // Copied because decorators change the fields of a response in place.
  return () => ({ status, fields: [...fields], body });
}

function plainType(text: string): string {
  return wireText(text) === text ? "text/plain" : "text/plain; charset=utf-8";
}

const REFERENCE = /\$(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|\{(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*))\})/g;

/** The parts of a request that a rewrite inspects; a `RequestContext` has them. */
interface RewriteRequest {
  readonly target: string;
  readonly path: string;
  readonly query: string | undefined;
  readonly pathParameters: Readonly<Record<string, string>> | undefined;
}

/** Returns the target for the upstream; undefined if the result must not be sent and the request is refused. */
type TargetRewrite = (request: RewriteRequest) => string | undefined;

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
