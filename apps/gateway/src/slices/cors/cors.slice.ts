import type { Cors, Route } from "@headworks/gateway-contract";
import { fieldValue, type RawFields } from "@headworks/http1";
import { foldVary } from "@headworks/http-fields";
import type { RequestContext } from "#request/context.ts";
import { isPreflight } from "#request/preflight.ts";
import type { Answer, Decorator, Gate } from "#request/phases.ts";
import type { GatewaySlice } from "#slice.ts";
import { checkCors } from "./cors.check.ts";
import { normalOrigin } from "./origin.ts";

/**
 * Lets pages of other origins use a route (Fetch standard, CORS protocol). Preflights are answered here and never reach
 * the upstream; fields of the upstream's own answer are replaced. Refusals of the gateway carry none of these fields,
 * except that of maintenance.
 */
export const cors: GatewaySlice = {
  name: "cors",
  check: checkCors,
  compile: () => ({
    gateFor: (route: Route): Gate | undefined =>
      route.cors === undefined ? undefined : preflightGate(new CrossOriginRule(route.cors, route.methods)),
    decoratorFor: (route: Route): Decorator | undefined =>
      route.cors === undefined
        ? undefined
        : decoratorOf(new CrossOriginRule(route.cors, route.methods), route.maintenance !== undefined),
  }),
};

const DEFAULT_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/** One block of the document, ready to be asked. */
class CrossOriginRule {
  readonly #origins: ReadonlySet<string> | undefined;
  readonly #methods: ReadonlySet<string>;
  readonly #headers: ReadonlySet<string>;
  readonly #answer: readonly string[];
  readonly #preflight: readonly string[];

  /** `allowed` are the methods of the route, which answers all others with 405. */
  constructor(block: Cors, allowed: readonly string[] | undefined) {
    const isOpen = block.allowed_origins.includes("*");
    this.#origins = isOpen ? undefined : new Set(block.allowed_origins.map((origin) => normalOrigin(origin) ?? ""));
    this.#methods = new Set(
      (block.allowed_methods ?? allowed ?? DEFAULT_METHODS).map((method) => method.toUpperCase()),
    );
    this.#headers = new Set(block.allowed_headers?.map((name) => name.toLowerCase()));
    const credentials = block.allow_credentials === true ? ["Access-Control-Allow-Credentials", "true"] : [];
    const exposed = block.expose_headers ?? [];
    this.#answer = [
      ...credentials,
      ...(exposed.length === 0 ? [] : ["Access-Control-Expose-Headers", exposed.join(", ")]),
    ];
    const headers = block.allowed_headers ?? [];
    this.#preflight = [
      ...credentials,
      "Access-Control-Allow-Methods",
      [...this.#methods].join(", "),
      ...(headers.length === 0 ? [] : ["Access-Control-Allow-Headers", headers.join(", ")]),
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

  get answerFields(): readonly string[] {
    return this.#answer;
  }

  /** The fields that allow what a preflight asks for; none when any of it is not allowed. */
  preflightFields(request: RequestContext): readonly string[] {
    const origin = this.allowOrigin(request);
    if (origin === undefined) return [];
    if (!this.#methods.has(fieldValue(request.fields, "access-control-request-method") ?? "")) return [];
    if (!this.#headers.has("*")) {
      const asked = fieldValue(request.fields, "access-control-request-headers") ?? "";
      for (const piece of asked.split(",")) {
        const name = piece.trim().toLowerCase();
        if (name !== "" && !this.#headers.has(name)) return [];
      }
    }
    return ["Access-Control-Allow-Origin", origin, ...this.#preflight];
  }
}

const PREFLIGHT_VARY = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";

function preflightGate(rule: CrossOriginRule): Gate {
  return {
    check: (request): Answer | undefined =>
      isPreflight(request)
        ? { status: 204, fields: [...rule.preflightFields(request), "Vary", PREFLIGHT_VARY], body: "" }
        : undefined,
  };
}

function decoratorOf(rule: CrossOriginRule, isInMaintenance: boolean): Decorator {
  return {
    on: isInMaintenance ? "every-route-response" : "action-responses",
    decorate: (request, head, origin) => {
      // In maintenance nothing but that refusal and preflights is answered before the action.
      if (origin === "short-circuit" && head.status !== 503) return;
      // Of answers that were kept as well: they are as the upstream gave them.
      if (origin !== "short-circuit") removeUpstreamFields(head.fields);
      const allowed = rule.allowOrigin(request);
      if (allowed !== undefined) head.fields.push("Access-Control-Allow-Origin", allowed, ...rule.answerFields);
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
