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
  /** Undefined: all headers. */
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
    const asked = fieldValues(request.fields, "access-control-request-headers")
      .flatMap((line) => line.split(","))
      .map((name) => name.trim())
      .filter((name) => name !== "");
    if (!asked.every((name) => TOKEN.test(name) && this.#headers?.has(name.toLowerCase()) !== false)) return [];
    // Listed by name, since * excludes Authorization and does not apply with credentials.
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
