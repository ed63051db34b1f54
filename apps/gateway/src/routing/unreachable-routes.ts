import type { ConfigDocument, Match, Route } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";
import { hostKey, parseMatchHost } from "./route-table.ts";
import { canonicalTarget, isOwnPath } from "./request-path.ts";
import { barePrefix, type FieldPath, parseTemplate, templateForm } from "./path-template.ts";

/** A route with a valid path, and its path in the document. */
interface Taken {
  readonly name: string;
  readonly match: Match;
  readonly fieldPath: FieldPath;
}

/** Longer prefixes are not searched in patterns. */
const MAX_COMPARED_LENGTH = 500;

/**
 * Warns of routes that never get a request, because earlier ones take precedence: the same path, an exact path that
 * is a pattern's only match, or a pattern that matches every path with a prefix.
 */
export class UnreachableRoutes {
  readonly #report: IssueReport;
  readonly #document: Pick<ConfigDocument, "listeners" | "gateway">;
  readonly #byHost = new Map<string, RoutesOfHost>();

  constructor(document: Pick<ConfigDocument, "listeners" | "gateway">, report: IssueReport) {
    this.#document = document;
    this.#report = report;
  }

  /** Adds a route with a valid path and host; in document order. */
  take({ name, match }: Route, fieldPath: FieldPath): void {
    const path = onlyPath(match.path);
    if (path !== undefined && isOwnPath(path, this.#document)) {
      this.#never(name, fieldPath, `the gateway answers ${path} itself`);
    }
    const start = match.path.type === "regex" ? (literalStart(match.path.value) ?? "") : "";
    if (start !== "" && (!start.startsWith("/") || /[?#]/.test(start))) {
      this.#never(name, fieldPath, `its pattern begins with ${start}, and a path begins with / and has no ? or #`);
    }
    this.#checkScheme(name, match, fieldPath);
    const host = parseMatchHost(match.host);
    if ("issue" in host) return;
    const key = hostKey(host);
    let routes = this.#byHost.get(key);
    if (routes === undefined) this.#byHost.set(key, (routes = new RoutesOfHost(this.#report)));
    routes.take({ name, match, fieldPath });
  }

  finish(): void {
    for (const routes of this.#byHost.values()) routes.finish();
  }

  /** The scheme is that of a listener, unless trusted proxies report another one. */
  #checkScheme(name: string, { listener, scheme }: Match, fieldPath: FieldPath): void {
    const { listeners, gateway } = this.#document;
    if (scheme === undefined || (gateway.trusted_proxies ?? []).length > 0) return;
    const own = listeners.filter((each) => listener === undefined || each.name === listener);
    if (own.length === 0 || own.some(({ protocol = "http" }) => protocol === scheme)) return;
    const where = listener === undefined ? "no listener" : `the listener "${listener}"`;
    const never = listener === undefined ? "speaks" : "does not speak";
    this.#never(
      name,
      fieldPath,
      `${where} ${never} ${scheme}, and no trusted proxy could say that a request came by it`,
    );
  }

  #never(name: string, fieldPath: FieldPath, why: string): void {
    this.#report.warning("route_shadowed", fieldPath, `The route "${name}" never gets a request: ${why}`);
  }
}

/** Routes with the same hosts, the only ones that can shadow each other. */
class RoutesOfHost {
  readonly #report: IssueReport;
  readonly #sameForm = new Map<string, Taken[]>();
  /** Patterns that match one path only. */
  readonly #literals: { readonly taken: Taken; readonly path: string }[] = [];
  readonly #prefixes: Taken[] = [];
  readonly #broad = new BroadPatterns();

  constructor(report: IssueReport) {
    this.#report = report;
  }

  take(taken: Taken): void {
    const { type, value } = taken.match.path;
    const key = `${type} ${pathKey(taken.match.path)}`;
    const before = this.#sameForm.get(key);
    if (before === undefined) this.#sameForm.set(key, [taken]);
    else if (this.#isTold(taken, before)) return;
    else before.push(taken);
    if (type === "prefix") this.#prefixes.push(taken);
    if (type !== "regex") return;
    const path = onlyPath(taken.match.path);
    if (path !== undefined) this.#literals.push({ taken, path });
    const broader = this.#broad.find(literalStart(value), taken, false);
    if (broader === undefined) this.#broad.add(taken);
    else {
      const why = `the pattern of the route "${broader.name}", which stands before it, takes everything that its pattern could fit`;
      this.#never(taken, why);
    }
  }

  finish(): void {
    for (const { taken, path } of this.#literals) {
      const exact = this.#sameForm.get(`exact ${pathKey({ type: "exact", value: path })}`)?.find(covering(taken));
      if (exact === undefined) continue;
      const why = `the route "${exact.name}" has the only path that its pattern fits, and an exact path comes before a pattern`;
      this.#never(taken, why);
    }
    for (const taken of this.#prefixes) {
      const prefix = barePrefix(taken.match.path.value);
      const broader = this.#broad.find(prefix === "" ? "/" : prefix, taken, true);
      if (broader === undefined) continue;
      const why = `the pattern of the route "${broader.name}" takes all paths with its prefix, and a pattern comes before a prefix`;
      this.#never(taken, why);
    }
  }

  #isTold(taken: Taken, before: readonly Taken[]): boolean {
    const { type, value } = taken.match.path;
    const other = before.find((each) => each.match.path.value !== value && areTogether(each, taken));
    if (type === "exact" && other !== undefined && parametersDiffer(other.match.path.value, value)) {
      const message = `The template takes the same paths as "${other.match.path.value}" of the route "${other.name}"; give the parameters the same names, or remove one`;
      this.#report.error("bad_value", taken.fieldPath, message);
      return true;
    }
    const first = before.find(covering(taken));
    if (first === undefined) return false;
    const why = `the route "${first.name}", which stands before it, has the same path, and a path decides on one route`;
    this.#never(taken, why);
    return true;
  }

  #never({ name, fieldPath }: Taken, why: string): void {
    this.#report.warning("route_shadowed", fieldPath, `The route "${name}" never gets a request: ${why}`);
  }
}

/** Patterns that match everything with a given start, by that start. */
class BroadPatterns {
  readonly #byStart = new Map<string, Taken[]>();

  add(taken: Taken): void {
    const start = broadStart(taken.match.path.value);
    if (start === undefined) return;
    const known = this.#byStart.get(start);
    if (known === undefined) this.#byStart.set(start, [taken]);
    else known.push(taken);
  }

  /** A pattern that matches all paths with this start, at the end of a segment if `isWhole`. */
  find(beginning: string | undefined, taken: Taken, isWhole: boolean): Taken | undefined {
    if (beginning === undefined || this.#byStart.size === 0 || beginning.length > MAX_COMPARED_LENGTH) return undefined;
    for (let end = 0; end <= beginning.length; end += 1) {
      const found = this.#byStart.get(beginning.slice(0, end))?.find(covering(taken));
      if (found !== undefined) return found;
    }
    // A prefix that ends at a segment matches the path itself and all paths below it.
    for (
      let end = isWhole ? beginning.length : beginning.lastIndexOf("/");
      end > 0;
      end = beginning.lastIndexOf("/", end - 1)
    ) {
      const found = this.#byStart.get(`${beginning.slice(0, end)} /`)?.find(covering(taken));
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** Whether a route covers another, as far as listener and scheme are concerned. */
function covering(taken: Taken): (other: Taken) => boolean {
  const { listener, scheme } = taken.match;
  return ({ match }) => (match.listener ?? listener) === listener && (match.scheme ?? scheme) === scheme;
}

/** Whether a request could match both, as far as listener and scheme are concerned. */
function areTogether({ match: one }: Taken, { match: other }: Taken): boolean {
  const meet = (first: string | undefined, second: string | undefined): boolean =>
    first === undefined || second === undefined || first === second;
  return meet(one.listener, other.listener) && meet(one.scheme, other.scheme);
}

const TEXT = String.raw`(?:[\w/~%:@,;=!&'-]|\\[^\w])*`;
const unescaped = (text: string): string => text.replaceAll(/\\(.)/g, "$1");

function onlyPath({ type, value }: Match["path"]): string | undefined {
  if (type === "prefix") return undefined;
  if (type === "exact") return /[{}]/.test(value) ? undefined : canonicalTarget(value);
  const text = new RegExp(`^\\^(${TEXT})\\$$`).exec(value)?.[1];
  return text === undefined || text === "" ? undefined : unescaped(text);
}

/** Literal start of all paths that a pattern matches; undefined if it has no simple one. */
function literalStart(pattern: string): string | undefined {
  if (pattern.includes("|")) return undefined;
  const [all = "", text = ""] = new RegExp(`^\\^(${TEXT})`).exec(pattern) ?? [];
  if (all === "") return undefined;
  const isRepeated = /^[*+?{]/.test(pattern.slice(all.length));
  return unescaped(isRepeated ? text.replace(/\\?.$/, "") : text);
}

/** A text with which the pattern matches all paths that begin; before ` /`, at a segment's end. */
function broadStart(pattern: string): string | undefined {
  if (/^\^?(?:\(?\.[*+]\)?\$?|\/\(?\.\*\)?\$?|\/?)$/.test(pattern)) return "";
  const [, text, rest = ""] = new RegExp(`^\\^(${TEXT})(.*)$`).exec(pattern) ?? [];
  if (text === undefined || text === "") return undefined;
  if (/^(?:\(?\.\*\)?\$?)?$/.test(rest)) return unescaped(text);
  return /^\((?:\?:)?(?:\/\.\*\)\?\$|\/\|\$\))$/.test(rest) ? `${unescaped(text)} /` : undefined;
}

function parametersDiffer(one: string, other: string): boolean {
  return one !== other && canonicalTarget(one) !== canonicalTarget(other);
}

function pathKey({ type, value }: Match["path"]): string {
  if (type === "regex") return value;
  if (type === "prefix") return barePrefix(value);
  const segments = parseTemplate(value);
  return typeof segments === "string" ? value : templateForm(segments);
}
