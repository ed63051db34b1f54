import { namedMethods, type Cors, type Route } from "@headworks/gateway-contract";
import { fieldValue, fieldValues, type RawFields } from "@headworks/http1";
import { foldVary } from "@headworks/http-fields";
import type { RequestContext } from "#request/context.ts";
import { asksAhead, isPreflight } from "#request/preflight.ts";
import type { Response, Decorator, Gate } from "#request/phases.ts";
import type { GatewaySlice } from "#slice.ts";
import { checkCors, TOKEN } from "./cors.check.ts";
import { normalOrigin } from "./origin.ts";

/**
 * Lets pages of other origins use a route (Fetch standard, CORS protocol). Preflights are answered here and never reach
 * the upstream; fields of the upstream's own answer are replaced. Refusals of the gateway carry these fields as well, so that
 * pages can read what they say, and so does 404 where the path of the request is the route's.
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

/** One block of the document, ready to be asked. */
class CrossOriginRule {
  readonly #origins: ReadonlySet<string> | undefined;
  /** Undefined: every method. */
  readonly #methods: ReadonlySet<string> | undefined;
  /** Undefined: every header. */
  readonly #headers: ReadonlySet<string> | undefined;
  readonly #response: readonly string[];
  readonly #preflight: readonly string[];

  /** Whatever the block allows, the route has a say in its methods: it responds to all others with 405 or 404. */
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

  /** The value of Access-Control-Allow-Origin; undefined for an origin that is not allowed, or none. */
  allowOrigin(request: RequestContext): string | undefined {
    const origin = fieldValue(request.fields, "origin");
    if (origin === undefined) return undefined;
    if (this.#origins === undefined) return "*";
    if (this.#origins.has(origin)) return origin;
    const normal = normalOrigin(origin);
    // As the browser spells it: it compares byte by byte.
    return normal !== undefined && this.#origins.has(normal) ? origin : undefined;
  }

  get responseFields(): readonly string[] {
    return this.#response;
  }

  /** The fields that allow what a preflight asks for; none when any of it is not allowed. */
  preflightFields(request: RequestContext): readonly string[] {
    const origin = this.allowOrigin(request);
    if (origin === undefined) return [];
    const method = fieldValue(request.fields, "access-control-request-method") ?? "";
    if (!TOKEN.test(method) || this.#methods?.has(method) === false) return [];
    const asked = fieldValues(request.fields, "access-control-request-headers")
      .flatMap((line) => line.split(","))
      .map((name) => name.trim())
      .filter((name) => name !== "");
    if (!asked.every((name) => TOKEN.test(name) && this.#headers?.has(name.toLowerCase()) !== false)) return [];
    // By name: * means no Authorization to browsers, and nothing at all where there are credentials.
    return [
      "Access-Control-Allow-Origin",
      origin,
      ...this.#preflight,
      ...(this.#methods === undefined ? ["Access-Control-Allow-Methods", method] : []),
      ...(this.#headers === undefined && asked.length > 0 ? ["Access-Control-Allow-Headers", asked.join(", ")] : []),
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
      // What a preflight is told is said already; what refuses one, no page gets to read.
      if (origin === "short-circuit" && asksAhead(request)) return;
      // Of answers that were kept as well: they are as the upstream gave them.
      if (origin !== "short-circuit") removeUpstreamFields(head.fields);
      const allowed = rule.allowOrigin(request);
      if (allowed !== undefined) head.fields.push("Access-Control-Allow-Origin", allowed, ...rule.responseFields);
      foldVary(head.fields, "Origin");
    },
  };
}

/** Two words on the same thing are none to a browser: it refuses an answer with two origins. */
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
