import { type ConfigDocument, type Cors, namedMethods, type Route } from "@headworks/gateway-contract";
import { canonicalHost } from "@headworks/host-patterns";
import { foldVary } from "@headworks/http-fields";
import { fieldValue, fieldValues, type RawFields } from "@headworks/http1";
import {
  asksAhead,
  type Decorator,
  type Gate,
  isPreflight,
  type RequestContext,
  type Response,
} from "#request/context.ts";
import type { GatewaySlice, IssueReport } from "#slice.ts";

const ORIGIN = /^([a-z][a-z0-9+.-]*):\/\/((?:\[[0-9a-f:.]+\]|[^\s/?#@\\[\]:,*]+)(?::[0-9]{1,5})?)$/;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: ":80", https: ":443", ws: ":80", wss: ":443" };

/** A token, as methods and header names are (RFC 9110 section 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * CORS protocol (Fetch standard). Preflights are handled by the gateway and never reach the upstream; CORS fields of
 * upstream responses are replaced. Refusals of the gateway carry CORS fields too, so that scripts can read them, as do
 * 404 responses if the path matches the route.
 */
export const cors: GatewaySlice = {
  name: "cors",
  check: checkCors,
  compile: () => ({
    gateFor: (route: Route): Gate | undefined =>
      route.cors === undefined ? undefined : preflightGate(new CrossOriginRule(route.cors, route)),
    decoratorFor: (route: Route): Decorator | undefined =>
      route.cors === undefined ? undefined : decoratorOf(new CrossOriginRule(route.cors, route)),
  }),
};

const DEFAULT_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/** A compiled `cors` block. */
class CrossOriginRule {
  readonly #origins: ReadonlySet<string> | undefined;
  /** Undefined: all methods. */
  readonly #methods: ReadonlySet<string> | undefined;
  readonly #headers: ReadonlySet<string> | undefined;
  readonly #response: readonly string[];
  readonly #preflight: readonly string[];

  /** The route's own methods restrict the block's: others get 405 or 404. */
  constructor(block: Cors, { methods, match }: Pick<Route, "methods" | "match">) {
    const isOpen = block.allowed_origins.includes("*");
    this.#origins = isOpen ? undefined : new Set(block.allowed_origins.map((origin) => normalOrigin(origin) ?? ""));
    const taken = namedMethods(methods) ?? namedMethods(match.methods);
    const isEvery = block.allowed_methods?.includes("*") === true;
    const named = namedMethods(block.allowed_methods) ?? taken ?? (isEvery ? undefined : DEFAULT_METHODS);
    this.#methods = named === undefined ? undefined : new Set(named);
    const headers = block.allowed_headers ?? [];
    this.#headers = headers.includes("*") ? undefined : new Set(headers.map((name) => name.toLowerCase()));
    const credentials = block.allow_credentials === true ? ["Access-Control-Allow-Credentials", "true"] : [];
    const exposed = block.expose_headers ?? [];
    this.#response = [
      ...credentials,
      ...(exposed.length === 0 ? [] : ["Access-Control-Expose-Headers", exposed.join(", ")]),
    ];
    this.#preflight = [
      ...credentials,
      ...(named === undefined ? [] : ["Access-Control-Allow-Methods", named.join(", ")]),
      ...(headers.length === 0 || this.#headers === undefined
        ? []
        : ["Access-Control-Allow-Headers", headers.join(", ")]),
      ...(block.max_age_secs === undefined ? [] : ["Access-Control-Max-Age", String(block.max_age_secs)]),
    ];
  }

  /** The value of Access-Control-Allow-Origin; undefined for a disallowed or missing origin. */
  allowOrigin(request: RequestContext): string | undefined {
    const origin = fieldValue(request.fields, "origin");
    if (origin === undefined) return undefined;
    if (this.#origins === undefined) return "*";
    if (this.#origins.has(origin)) return origin;
    const normal = normalOrigin(origin);
    // Echoed unchanged, since browsers compare byte by byte.
    return normal !== undefined && this.#origins.has(normal) ? origin : undefined;
  }

  get responseFields(): readonly string[] {
    return this.#response;
  }

  /** Preflight response fields; none if anything requested is not allowed. */
  preflightFields(request: RequestContext): readonly string[] {
    const origin = this.allowOrigin(request);
    if (origin === undefined) return [];
    const method = fieldValue(request.fields, "access-control-request-method") ?? "";
    if (!TOKEN.test(method) || this.#methods?.has(method) === false) return [];
    const requested = fieldValues(request.fields, "access-control-request-headers")
      .flatMap((line) => line.split(","))
      .map((name) => name.trim())
      .filter((name) => name !== "");
    if (!requested.every((name) => TOKEN.test(name) && this.#headers?.has(name.toLowerCase()) !== false)) return [];
    // Listed by name, since * excludes Authorization and does not apply with credentials.
    return [
      "Access-Control-Allow-Origin",
      origin,
      ...this.#preflight,
      ...(this.#methods === undefined ? ["Access-Control-Allow-Methods", method] : []),
      ...(this.#headers === undefined && requested.length > 0
        ? ["Access-Control-Allow-Headers", requested.join(", ")]
        : []),
    ];
  }
}

const PREFLIGHT_VARY = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";

function preflightGate(rule: CrossOriginRule): Gate {
  return {
    check: (request): Response | undefined =>
      isPreflight(request)
        ? { status: 204, fields: [...rule.preflightFields(request), "Vary", PREFLIGHT_VARY], body: "" }
        : undefined,
  };
}

function decoratorOf(rule: CrossOriginRule): Decorator {
  return {
    on: "every-path-response",
    decorate: (request, head, origin) => {
      // Preflight responses are complete, and refused ones are not readable by scripts.
      if (origin === "short-circuit" && asksAhead(request)) return;
      // Also for cached responses, which contain the upstream's fields.
      if (origin !== "short-circuit") removeUpstreamFields(head.fields);
      const allowed = rule.allowOrigin(request);
      if (allowed !== undefined) head.fields.push("Access-Control-Allow-Origin", allowed, ...rule.responseFields);
      foldVary(head.fields, "Origin");
    },
  };
}

/** Browsers reject responses with two allowed origins. */
function removeUpstreamFields(fields: RawFields): void {
  let kept = 0;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (name.length > 15 && name.slice(0, 15).toLowerCase() === "access-control-") continue;
    fields[kept] = name;
    fields[kept + 1] = fields[at + 1] ?? "";
    kept += 2;
  }
  fields.length = kept;
}

type FieldPath = readonly (string | number)[];

/** Checks syntax of origins, that a wildcard is the only entry, and that it is not combined with credentials. */
function checkCors(document: ConfigDocument, report: IssueReport): void {
  for (const [index, { cors }] of document.routes.entries()) {
    if (cors !== undefined) checkBlock(cors, ["routes", index, "cors"], report);
  }
}

function checkBlock(cors: Cors, fieldPath: FieldPath, report: IssueReport): void {
  const { allowed_origins: origins, allowed_headers: headers = [], expose_headers: exposed = [] } = cors;
  for (const [index, origin] of origins.entries()) {
    if (origin === "*" ? origins.length === 1 : normalOrigin(origin) !== undefined) continue;
    const message =
      origin === "*"
        ? "* allows every origin, so it must stand alone"
        : "This is no origin: it must be * or scheme://host[:port], without path, query and wildcard";
    report.error("bad_value", [...fieldPath, "allowed_origins", index], message);
  }
  for (const [index, header] of headers.entries()) {
    if (TOKEN.test(header)) continue;
    report.error(
      "bad_header",
      [...fieldPath, "allowed_headers", index],
      `This is no header name, and not *${header.includes(",") ? "; write each name for itself" : ""}`,
    );
  }
  for (const [index, header] of exposed.entries()) {
    if (header !== "*") continue;
    report.error("bad_header", [...fieldPath, "expose_headers", index], "Headers to expose must be named one by one");
  }
  if (cors.allow_credentials !== true) return;
  const at = [...fieldPath, "allow_credentials"];
  if (origins.includes("*")) {
    report.error("bad_value", at, "Credentials cannot be allowed to every origin: name the origins");
  }
  if (headers.includes("*")) {
    report.error("bad_value", at, "Credentials cannot be allowed with every header: name the headers");
  }
}

/** Normalizes an origin (RFC 6454): lower case, A-labels, no default port. Undefined if invalid. */
export function normalOrigin(text: string): string | undefined {
  const [, scheme, host] = ORIGIN.exec(text.toLowerCase()) ?? [];
  if (scheme === undefined || host === undefined) return undefined;
  const port = Object.hasOwn(DEFAULT_PORTS, scheme) ? DEFAULT_PORTS[scheme] : undefined;
  const bare = port !== undefined && host.endsWith(port) ? host.slice(0, -port.length) : host;
  return `${scheme}://${/[^\x00-\x7f]/.test(bare) ? wireHost(bare) : bare}`;
}

function wireHost(host: string): string {
  const [, name = "", port = ""] = /^(.*?)(:[0-9]+)?$/.exec(host) ?? [];
  return `${canonicalHost(name)}${port}`;
}
